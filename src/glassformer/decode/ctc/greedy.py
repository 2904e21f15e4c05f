"""The likeliest path of CTC, frame by frame."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class CtcPath:
    """The text of a path.

    Attributes:
        tokens: Without blanks, runs of equal tokens once.
        starts: The frame where each token begins.
        log_probability: Of the path, over all frames.
    """

    tokens: tuple[int, ...]
    starts: tuple[int, ...]
    log_probability: float


def ctc_greedy(
    log_probs: Float[Tensor, "B T V"], lengths: Sequence[int], *, blank: int
) -> list[CtcPath]:
    """The likeliest path of each row.

    >>> scores = torch.full((1, 5, 3), -9.0)
    >>> scores[0, torch.arange(5), [1, 1, 0, 1, 2]] = 0.0
    >>> ctc_greedy(scores, [5], blank=0)[0].tokens
    (1, 1, 2)

    Args:
        lengths: The frames of each row; the rest is padding.
    """
    best, tokens = log_probs.max(-1)
    before = torch.nn.functional.pad(tokens[:, :-1], (1, 0), value=blank)
    begins = (tokens != blank) & (tokens != before)
    inside = torch.arange(log_probs.shape[1], device=log_probs.device)
    ends = torch.tensor(list(lengths), device=log_probs.device)
    real = inside < ends[:, None]  # (B, T)
    totals = best.masked_fill(~real, 0.0).sum(1).tolist()
    rows = zip(tokens.tolist(), (begins & real).tolist(), totals, strict=True)
    found = []
    for row, starts, total in rows:
        at = [frame for frame, begin in enumerate(starts) if begin]
        texts = tuple(row[frame] for frame in at)
        found.append(CtcPath(tokens=texts, starts=tuple(at), log_probability=total))
    return found
