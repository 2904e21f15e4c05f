"""Losses with their gradients, as GPU kernels: one program per token.

The scores of a token are read once for their log-sum-exp, and then again, from the cache, for what
follows from it. Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

BLOCK, WARPS = 2048, 4  # scores at a time, and the groups of 32 threads that share them


@triton.jit
def _some(row, start, vocabulary, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Scores from `start` on, where they are, and which of them exist."""
    at = start + tl.arange(0, BLOCK)
    inside = at < vocabulary
    return tl.load(row + at, mask=inside, other=float("-inf")).to(tl.float32), at, inside


@triton.jit
def _log_sum_exp(row, vocabulary, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    highest, total = float("-inf"), 0.0
    for start in range(0, vocabulary, BLOCK):
        x, _, _ = _some(row, start, vocabulary, BLOCK)
        before, highest = highest, tl.maximum(highest, tl.max(x))
        total = total * tl.exp(before - highest) + tl.sum(tl.exp(x - highest))
    return highest + tl.log(total)


@triton.jit
def _cross_entropy(  # type: ignore[no-untyped-def]
    scores, labels, losses, gradients, vocabulary, smoothing: tl.constexpr, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    row, label = scores + token * vocabulary, tl.load(labels + token)
    counts, spread = label >= 0, smoothing / vocabulary
    right = tl.load(row + tl.maximum(label, 0)).to(tl.float32)  # before a gradient replaces it
    lse, total = _log_sum_exp(row, vocabulary, BLOCK), 0.0
    for start in range(0, vocabulary, BLOCK):
        x, at, inside = _some(row, start, vocabulary, BLOCK)
        if smoothing > 0:
            total += tl.sum(tl.where(inside, x, 0.0))
        gradient = tl.exp(x - lse) - spread - tl.where(at == label, 1 - smoothing, 0.0)
        place = gradients + token * vocabulary + at
        tl.store(place, tl.where(counts, gradient, 0.0), mask=inside)
    loss = lse - (1 - smoothing) * right - spread * total
    tl.store(losses + token, tl.where(counts, loss, 0.0))


@triton.jit
def _divergence(a, b, labels, losses, grad_a, grad_b, vocabulary, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    token = tl.program_id(0).to(tl.int64)
    offset, counts = token * vocabulary, tl.load(labels + token) >= 0
    lse_a = _log_sum_exp(a + offset, vocabulary, BLOCK)
    lse_b = _log_sum_exp(b + offset, vocabulary, BLOCK)
    apart = 0.0
    for start in range(0, vocabulary, BLOCK):
        x, _, inside = _some(a + offset, start, vocabulary, BLOCK)
        y, _, _ = _some(b + offset, start, vocabulary, BLOCK)
        ratio = tl.where(inside, (x - lse_a) - (y - lse_b), 0.0)
        apart += tl.sum(tl.exp(x - lse_a) * ratio)
    tl.store(losses + token, tl.where(counts, apart, 0.0))
    for start in range(0, vocabulary, BLOCK):
        x, at, inside = _some(a + offset, start, vocabulary, BLOCK)
        y, _, _ = _some(b + offset, start, vocabulary, BLOCK)
        p, q = tl.exp(x - lse_a), tl.exp(y - lse_b)
        of_a = p * ((x - lse_a) - (y - lse_b) - apart)
        tl.store(grad_a + offset + at, tl.where(counts, of_a, 0.0), mask=inside)
        tl.store(grad_b + offset + at, tl.where(counts, q - p, 0.0), mask=inside)


@triton.jit
def _scale(x, factor, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    by = tl.load(factor)
    if by != 1.0:
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at, mask=at < size) * by, mask=at < size)


def cross_entropy(
    scores: Float[Tensor, "n V"],
    labels: Int[Tensor, " n"],
    smoothing: float,
    gradients: Float[Tensor, "n V"],
) -> Float[Tensor, " n"]:
    """The cross-entropy of each label, and into `gradients`, which may be the scores, theirs."""
    losses, sizes = torch.empty(len(scores), device=scores.device), (scores.shape[1], smoothing)
    _cross_entropy[len(scores),](
        scores.contiguous(),
        labels.contiguous(),
        losses,
        gradients,
        *sizes,
        block_for(scores),
        num_warps=WARPS,
    )
    return losses


def divergence(
    a: Float[Tensor, "n V"],
    b: Float[Tensor, "n V"],
    labels: Int[Tensor, " n"],
    grad_a: Float[Tensor, "n V"],
    grad_b: Float[Tensor, "n V"],
) -> Float[Tensor, " n"]:
    """D(a || b) for each token, and into `grad_a` and `grad_b` its gradients."""
    losses = torch.empty(len(a), device=a.device)
    tensors = a.contiguous(), b.contiguous(), labels.contiguous(), losses, grad_a, grad_b
    _divergence[len(a),](*tensors, a.shape[1], block_for(a), num_warps=WARPS)
    return losses


def scale(x: Tensor, factor: Float[Tensor, ""]) -> None:
    """Multiply in place, without touching the tensor if the factor is 1, as it mostly is."""
    _scale[triton.cdiv(x.numel(), BLOCK),](x, factor.float(), x.numel(), BLOCK, num_warps=WARPS)


def block_for(scores: Float[Tensor, "n V"]) -> int:
    """Scores that a program holds at a time."""
    return min(BLOCK, triton.next_power_of_2(scores.shape[1]))
