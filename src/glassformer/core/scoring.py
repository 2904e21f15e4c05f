"""Scoring: how a query is compared with a key, before the softmax.

score = cap(scale q·k)        cap(x) = c tanh(x / c), or x without a cap
"""

from dataclasses import dataclass

import torch
from torch import Tensor

EPSILON = torch.finfo(torch.float32).eps  # of the norms of queries and keys, in any type


@dataclass(frozen=True, slots=True)
class Scoring:
    """How queries and keys are compared.

    Args:
        scale: Factor on their product; 1/√K by default.
        softcap: Scores stay within ± this limit; None for no limit. Gemma 2, 2024.
        qk_norm: Whether queries and keys are normalised (RMSNorm) first. Henry et al., 2020.
        epsilon: Of these norms.
    """

    scale: float | None = None
    softcap: float | None = None
    qk_norm: bool = False
    epsilon: float = EPSILON


USUAL = Scoring()


def capped(scores: Tensor, limit: float | None) -> Tensor:
    """Scores within ± a limit, almost unchanged where they are small: limit * tanh(x / limit)."""
    return scores if limit is None else limit * torch.tanh(scores / limit)
