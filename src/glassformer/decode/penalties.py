"""How hypotheses of different lengths are compared: a sum of log-probabilities over a penalty.

    none      sum
    average   sum / length^strength
    gnmt      sum / ((5 + length) / 6)^strength        Wu et al., 2016

To add one, write a function (length, strength) -> divisor that only grows or only falls with the
length, and list it in PENALTIES and in `config.decoding.PENALTY_NAMES`.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config.decoding import BeamConfig

Lengths = Int[Tensor, "*rows"]


def none(lengths: Lengths, strength: float) -> Float[Tensor, "*rows"]:
    """The sum itself."""
    return torch.ones_like(lengths, dtype=torch.float32)


def average(lengths: Lengths, strength: float) -> Float[Tensor, "*rows"]:
    """The sum over the length; with a strength of 1, the average log-probability."""
    return lengths.to(torch.float32) ** strength


def gnmt(lengths: Lengths, strength: float) -> Float[Tensor, "*rows"]:
    """Gentler on short ones."""
    return ((5 + lengths) / 6) ** strength


PENALTIES: dict[str, Callable[[Lengths, float], Float[Tensor, "*rows"]]] = {
    "none": none,
    "average": average,
    "gnmt": gnmt,
}


class Ranking:
    """Scores by which hypotheses of different lengths are compared.

    Divisors are computed once for all lengths, so that equal sums of equal lengths score the same
    wherever they stand in a batch: the power of a number may differ by a bit from place to place.

    Args:
        longest: The most tokens of any row.
    """

    def __init__(self, config: BeamConfig, longest: int, device: torch.device) -> None:
        lengths = torch.arange(1, longest + 2, device=device)
        self.soon = config.stopping == "soon"
        self.divisors = PENALTIES[config.penalty](lengths, config.strength)

    def scores(
        self, total: Float[Tensor, "B W"], length: int | Int[Tensor, "B 1"]
    ) -> Float[Tensor, "B W"]:
        """Of sums that end after so many tokens."""
        return total / self.divisors[length - 1]

    def reachable(
        self, total: Float[Tensor, "B W"], length: int, limits: Int[Tensor, "B 1"]
    ) -> Float[Tensor, "B W"]:
        """The best score that a path of this length can still end with.

        No token adds to a sum of log-probabilities, so the best that can happen is that it stays as
        it is, and that the path ends where the penalty is kindest: as late as it may, or at once.
        """
        if self.soon:
            return self.scores(total, length)
        late = self.scores(total, limits.clamp(min=length + 1))
        return torch.maximum(late, self.scores(total, length + 1))
