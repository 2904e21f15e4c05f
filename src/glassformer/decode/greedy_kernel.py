"""The likeliest token and its log-probability in two kernels in Triton, for CUDA.

    log p(token) = max(scores) - log Σ exp(scores)

PyTorch's softmax and argmax each read a row of scores by a single processor. Here several read a
part of a row each, and a second kernel joins what they found and writes it to the paths.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # scores read at once
PARTS = 64  # of a row, at most


@triton.jit
def parts_kernel(
    scores, allowed, found, size, PARTS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr
):
    row, part = tl.program_id(0), tl.program_id(1)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    where = tl.zeros((BLOCK,), tl.int32)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        token = (step * PARTS + part) * BLOCK + tl.arange(0, BLOCK)
        real = token < size
        at = row.to(tl.int64) * size + token
        score = tl.load(scores + at, real, other=float("-inf"))
        choice = tl.load(allowed + at, real, other=float("-inf"))
        where = tl.where(choice > best, token, where)
        best = tl.maximum(best, choice)
        higher = tl.maximum(top, score)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - base) + tl.exp(score - base)
        top = higher
    highest = tl.max(top, axis=0)
    base = tl.where(highest == float("-inf"), 0.0, highest)
    winner = tl.max(best, axis=0)
    to = found + (row * PARTS + part) * 4
    tl.store(to, winner)
    first = tl.min(tl.where(best == winner, where, size), axis=0)
    tl.store(to + 1, first.to(tl.int32).to(tl.float32, bitcast=True))
    tl.store(to + 2, highest)
    tl.store(to + 3, tl.sum(total * tl.exp(top - base), axis=0))


@triton.jit(do_not_specialize=["length"])  # a kernel for all of them
def joined_kernel(found, tokens, path, path_scores, step, size, length, PARTS: tl.constexpr):
    row = tl.program_id(0)
    part = found + (row * PARTS + tl.arange(0, PARTS)) * 4
    best = tl.load(part)
    where = tl.load(part + 1).to(tl.int32, bitcast=True)
    top = tl.load(part + 2)
    winner, highest = tl.max(best, axis=0), tl.max(top, axis=0)
    total = tl.sum(tl.load(part + 3) * tl.exp(top - highest), axis=0)
    token = tl.min(tl.where(best == winner, where, size), axis=0)
    token = tl.minimum(token, size - 1)  # where scores are NaN, none is the best
    tl.store(tokens + row, token.to(tl.int64))
    log_total = highest + tl.log(total)
    none_left = (winner == float("-inf")) & (log_total == log_total)
    at = row.to(tl.int64) * length + tl.load(step)
    tl.store(path + at, tl.where(none_left, -1, token).to(tl.int64))
    tl.store(path_scores + at, winner - log_total)


def choose(
    scores: Tensor, allowed: Tensor, tokens: Tensor, path: Tensor, path_scores: Tensor, step: Tensor
) -> None:
    """Write the likeliest allowed token of every branch, -1 if there is none, and its score.

    Args:
        scores, allowed: (B, W, V) in fp32; those of the model, and under the rules.
        tokens: (B, W) to continue with; written.
        path, path_scores: (B, W, L), of which the entry at `step` is written.
    """
    size, rows = scores.shape[-1], tokens.numel()
    parts = min(PARTS, triton.next_power_of_2(triton.cdiv(size, BLOCK)))
    found = torch.empty(rows, parts, 4, dtype=torch.float32, device=scores.device)
    steps = triton.cdiv(size, parts * BLOCK)
    parts_kernel[(rows, parts)](
        scores, allowed, found, size, PARTS=parts, STEPS=steps, BLOCK=BLOCK, num_warps=4
    )
    length = path.shape[-1]
    joined_kernel[(rows,)](
        found, tokens, path, path_scores, step, size, length, PARTS=parts, num_warps=1
    )


def likeliest(scores: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest allowed token of each row (B, V), -1 if there is none, and its score."""
    rows, device = len(scores), scores.device
    path = torch.empty(rows, 1, 1, dtype=torch.long, device=device)
    path_scores = torch.empty(rows, 1, 1, dtype=torch.float32, device=device)
    step = torch.zeros(1, dtype=torch.long, device=device)
    choose(scores, allowed, torch.empty_like(path[..., 0]), path, path_scores, step)
    return path.view(rows), path_scores.view(rows)
