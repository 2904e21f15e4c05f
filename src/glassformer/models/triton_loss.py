"""Cross-entropy and its gradient in one kernel, for GPUs: one program per token.

The scores of a token are read once for their log-sum-exp, and once more, from the cache, for the
gradient that replaces them. Milakov and Gimelshein, "Online normalizer calculation for softmax",
2018.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

BLOCK, WARPS = 2048, 4  # scores at a time, and the groups of 32 threads that share them


@triton.jit
def _kernel(scores, labels, losses, vocabulary, smoothing: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    token = tl.program_id(0).to(tl.int64)
    row, label = scores + token * vocabulary, tl.load(labels + token)
    counts, columns = label >= 0, tl.arange(0, BLOCK)
    spread = smoothing / vocabulary

    highest, total, plain = float("-inf"), 0.0, 0.0
    for start in range(0, vocabulary, BLOCK):
        inside = start + columns < vocabulary
        x = tl.load(row + start + columns, mask=inside, other=float("-inf")).to(tl.float32)
        before, highest = highest, tl.maximum(highest, tl.max(x))
        total = total * tl.exp(before - highest) + tl.sum(tl.exp(x - highest))
        if smoothing > 0:
            plain += tl.sum(tl.where(inside, x, 0.0))
    lse = highest + tl.log(total)
    right = tl.load(row + tl.maximum(label, 0)).to(tl.float32)
    loss = lse - (1 - smoothing) * right - spread * plain
    tl.store(losses + token, tl.where(counts, loss, 0.0))

    for start in range(0, vocabulary, BLOCK):
        at = start + columns
        inside = at < vocabulary
        x = tl.load(row + at, mask=inside, other=float("-inf")).to(tl.float32)
        gradient = tl.exp(x - lse) - spread - tl.where(at == label, 1 - smoothing, 0.0)
        tl.store(row + at, tl.where(counts, gradient, 0.0), mask=inside)


def losses_into_gradients(
    scores: Float[Tensor, "n V"], labels: Int[Tensor, " n"], smoothing: float
) -> Float[Tensor, " n"]:
    """The losses of these tokens; their gradients replace the scores."""
    losses = torch.empty(len(scores), device=scores.device)
    block = min(BLOCK, triton.next_power_of_2(scores.shape[1]))
    _kernel[len(scores),](
        scores, labels, losses, scores.shape[1], smoothing, block, num_warps=WARPS
    )
    return losses
