"""The log-probability of given texts under CTC, and how many frames a text needs."""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def ctc_scores(
    log_probs: Float[Tensor, "B T V"],
    lengths: Sequence[int],
    texts: Sequence[Sequence[Sequence[int]]],
    *,
    blank: int,
) -> list[list[float]]:
    """The log-probability of every text of every row; minus infinity where frames are too few.

    Args:
        texts: Any number of texts for each row.
    """
    rows = [row for row, some in enumerate(texts) for _ in some]
    flat = [text for some in texts for text in some]
    if not flat:
        return [[] for _ in texts]
    chosen = log_probs[torch.tensor(rows, device=log_probs.device)].float()
    targets = torch.tensor([token for text in flat for token in text], dtype=torch.long)
    losses = F.ctc_loss(
        chosen.transpose(0, 1),
        targets.to(log_probs.device),
        torch.tensor([lengths[row] for row in rows]),  # read on the CPU
        torch.tensor(list(map(len, flat))),
        blank=blank,
        reduction="none",
    )
    found = iter((-losses).tolist())
    return [[next(found) for _ in some] for some in texts]


def frames_needed(tokens: Sequence[int]) -> int:
    """The fewest frames that can hold a text: one a token, and a blank between equal ones.

    >>> frames_needed([5, 5, 6])
    4
    """
    return len(tokens) + sum(a == b for a, b in pairwise(tokens))
