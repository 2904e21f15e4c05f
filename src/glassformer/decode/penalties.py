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


def ranked(
    total: Float[Tensor, "B W"], lengths: Int[Tensor, "B w"], config: BeamConfig
) -> Float[Tensor, "B W"]:
    """The scores that finished hypotheses of these lengths are compared by."""
    return total / PENALTIES[config.penalty](lengths, config.strength)


def reachable(
    total: Float[Tensor, "B W"], length: int, limits: Int[Tensor, "B 1"], config: BeamConfig
) -> Float[Tensor, "B W"]:
    """The best score that a path of this length can still end with.

    No token adds to a sum of log-probabilities, so the best that can happen is that it stays as it
    is, and that the path ends where the penalty is kindest: as late as it may, or at once.
    """
    if config.stopping == "soon":
        return ranked(total, torch.full_like(limits, length), config)
    return torch.maximum(
        ranked(total, limits.clamp(min=length + 1), config),
        ranked(total, torch.full_like(limits, length + 1), config),
    )
