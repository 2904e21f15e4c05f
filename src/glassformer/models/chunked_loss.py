"""Cross-entropy over a large vocabulary, some tokens at a time.

The scores of all tokens of a batch over all of a vocabulary are by far its largest tensor. Here
only those of a chunk exist at a time, and they are computed again in the backward pass, one matrix
product more. Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

CHUNK = 2**24  # scores at a time: 64 MB in fp32


def chunked_cross_entropy(
    x: Float[Tensor, "N D"],
    labels: Int[Tensor, " N"],
    score: Callable[[Float[Tensor, "n D"]], Float[Tensor, "n V"]],
    vocab_size: int,
    *,
    smoothing: float = 0.0,
) -> Float[Tensor, " N"]:
    """The cross-entropy of each label, in fp32; 0 where it is to be ignored (-100).

    Args:
        score: From vectors to a score for every token of the vocabulary.
    """

    def some(x: Tensor, labels: Tensor) -> Tensor:
        scores = score(x).float()
        return F.cross_entropy(scores, labels, reduction="none", label_smoothing=smoothing)

    rows = max(1, CHUNK // vocab_size)
    pairs = zip(x.split(rows), labels.split(rows), strict=True)
    if not torch.is_grad_enabled():
        return torch.cat([some(*pair) for pair in pairs])
    return torch.cat(
        [checkpoint(some, *pair, use_reentrant=False, preserve_rng_state=False) for pair in pairs]
    )
