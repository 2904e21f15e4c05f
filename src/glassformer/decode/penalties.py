"""How hypotheses of different lengths are compared: a sum of log-probabilities over a penalty.

    none      sum
    average   sum / length^strength
    gnmt      sum / ((5 + length) / 6)^strength        Wu et al., 2016

To add one, write a function (length, strength) -> divisor that is monotonic in the length, and list
it in PENALTIES and in `config.decoding.PENALTY_NAMES`.
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
    """Gentler on short hypotheses."""
    return ((5 + lengths) / 6) ** strength


PENALTIES: dict[str, Callable[[Lengths, float], Float[Tensor, "*rows"]]] = {
    "none": none,
    "average": average,
    "gnmt": gnmt,
}


class Ranking:
    """Scores by which hypotheses of different lengths are compared.

    Divisors are computed once for all lengths, so that equal sums of equal lengths score the same
    anywhere in a batch: the last bit of a power may depend on its place in a tensor.

    Args:
        longest: The maximum number of tokens of any row.
    """

    def __init__(self, config: BeamConfig, longest: int, device: torch.device) -> None:
        lengths = torch.arange(1, longest + 2, device=device)
        self.soon = config.stopping == "soon"
        self.divisors = PENALTIES[config.penalty](lengths, config.strength)

    def scores(
        self, total: Float[Tensor, "B W"], length: int | Int[Tensor, "B 1"]
    ) -> Float[Tensor, "B W"]:
        """The scores of sums of log-probabilities over `length` tokens."""
        return total / self.divisors[length - 1]

    def reachable(
        self, total: Float[Tensor, "B W"], length: int, limits: Int[Tensor, "B 1"]
    ) -> Float[Tensor, "B W"]:
        """An upper bound on the final score of an unfinished branch of this length.

        Tokens never increase a sum of log-probabilities, so in the best case the sum stays as it is
        and the branch ends where the penalty is most favourable: at its limit, or at once.
        """
        if self.soon:
            return self.scores(total, length)
        late = self.scores(total, limits.clamp(min=length + 1))
        return torch.maximum(late, self.scores(total, length + 1))
