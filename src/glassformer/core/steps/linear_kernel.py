"""`StepLinear` as one kernel in Triton, for CUDA.

Every program computes some columns of the result for some rows: it reads its part of the weight
once, and the vectors, which are small, again. The norm is applied to the sums: scaling x by s
scales x Wᵀ by s, and centring it subtracts mean(x) times the sum of each row of W.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

PROGRAMS = 264  # at least so many, if columns allow it: two for each of an H200's processors
DEEPEST = 1024  # channels read at once for a single row
# Products of 64 rows run on while the next vectors are loaded. Triton 3.6 sets room aside for that
# unless something else reads the vectors, too, as the sums of a norm do: they are overwritten then.
MOST_ROWS, MOST_NORMED_ROWS = 64, 32


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0)
    if ACTIVATION == "relu2":
        x = tl.maximum(x, 0.0)
        x = x * x
    if ACTIVATION == "gelu":
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    if ACTIVATION == "gelu-tanh":
        x = x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    if ACTIVATION == "silu":
        x = x * tl.sigmoid(x)
    return x


@triton.jit(do_not_specialize=["rows"])  # a kernel for all numbers of them
def linear_kernel(
    x,
    weight,
    bias,
    sums,
    residual,
    y,
    rows,
    width,
    outs,
    epsilon,
    NORM: tl.constexpr,
    ACTIVATION: tl.constexpr,
    GATED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    real_m, real_n = m < rows, n < outs
    first = weight + n.to(tl.int64)[:, None] * width
    second = weight + (n + outs).to(tl.int64)[:, None] * width
    found = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    widened = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    square = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, width, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        real_k = k < width
        real = real_n[:, None] & real_k[None, :]
        part = tl.load(
            x + m[:, None] * width + k[None, :], real_m[:, None] & real_k[None, :], other=0.0
        )
        w = tl.load(first + k[None, :], real, other=0.0)
        if BLOCK_M == 1:
            found += tl.sum(w.to(tl.float32) * part.to(tl.float32), axis=1)[None, :]
        else:
            found = tl.dot(part, tl.trans(w), found, input_precision="ieee")
        if GATED:
            w = tl.load(second + k[None, :], real, other=0.0)
            if BLOCK_M == 1:
                widened += tl.sum(w.to(tl.float32) * part.to(tl.float32), axis=1)[None, :]
            else:
                widened = tl.dot(part, tl.trans(w), widened, input_precision="ieee")
        if NORM != "none":
            wide = part.to(tl.float32)
            total += tl.sum(wide, axis=1)
            square += tl.sum(wide * wide, axis=1)
    if NORM == "layer":
        mean = total / width
        found -= mean[:, None] * tl.load(sums + n, real_n, other=0.0)[None, :]
        if GATED:
            widened -= mean[:, None] * tl.load(sums + outs + n, real_n, other=0.0)[None, :]
        scale = tl.rsqrt(square / width - mean * mean + epsilon)
        found, widened = found * scale[:, None], widened * scale[:, None]
    if NORM == "rms":
        scale = tl.rsqrt(square / width + epsilon)
        found, widened = found * scale[:, None], widened * scale[:, None]
    if BIAS:
        found += tl.load(bias + n, real_n, other=0.0).to(tl.float32)[None, :]
        if GATED:
            widened += tl.load(bias + outs + n, real_n, other=0.0).to(tl.float32)[None, :]
    found = activated(found, ACTIVATION)
    if GATED:
        found = found * widened
    at = m.to(tl.int64)[:, None] * outs + n[None, :]
    real = real_m[:, None] & real_n[None, :]
    if RESIDUAL:
        found += tl.load(residual + at, real, other=0.0).to(tl.float32)
    tl.store(y + at, found.to(y.dtype.element_ty), real)


def run(
    x: Tensor,
    weight: Tensor,
    *,
    bias: Tensor | None,
    sums: Tensor | None,
    residual: Tensor | None,
    norm: str | None,
    epsilon: float,
    activation: str | None,
    gated: bool,
    out: torch.dtype,
) -> Tensor:
    """The result for x (M, D), which is contiguous."""
    rows, width = x.shape
    outs = len(weight) // (2 if gated else 1)
    y = torch.empty(rows, outs, dtype=out, device=x.device)
    most = MOST_ROWS if norm is None else MOST_NORMED_ROWS
    block_m, block_n, block_k, warps, stages = blocks(rows, width, outs, most)
    linear_kernel[(triton.cdiv(outs, block_n), triton.cdiv(rows, block_m))](
        x,
        weight,
        weight if bias is None else bias,
        weight if sums is None else sums,
        x if residual is None else residual,
        y,
        rows,
        width,
        outs,
        epsilon,
        NORM=norm or "none",
        ACTIVATION=activation or "none",
        GATED=gated,
        BIAS=bias is not None,
        RESIDUAL=residual is not None,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=warps,
        num_stages=stages,
    )
    return y


def blocks(rows: int, width: int, outs: int, most: int) -> tuple[int, int, int, int, int]:
    """Rows, columns and channels that a program computes at once, its warps, and its stages.

    Args:
        most: The most rows.
    """
    if rows == 1:
        columns = next((n for n in (16, 8) if outs >= PROGRAMS * n), 4)
        return 1, columns, min(DEEPEST, triton.next_power_of_2(width)), 4, 1
    return min(most, max(16, triton.next_power_of_2(rows))), 16 if outs < 8192 else 64, 128, 4, 3
