"""`StepLinear` as kernels in Triton, for CUDA.

    row_kernel       a single vector: every program multiplies it with a few rows of the weight
    rows_kernel      several, as products of tiles
    moments_kernel   before these, the sums that the norm of each vector needs

The norm is applied to the products: scaling x by s scales x Wᵀ by s, and centring it subtracts
mean(x) times the sum of each row of W.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from glassformer.core.steps.overlap import can_overlap

PROGRAMS = 264  # at least so many, if columns allow it: two for each of an H200's processors
ROW_TILE = 16384  # numbers of the weight that a program reads at once for a single vector
MOST_ROWS = 64  # in a tile
MANY_OUTS = 8192  # from here on there are programs enough for wide tiles


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


@triton.jit
def row_kernel(
    x,
    weight,
    bias,
    sums,
    residual,
    y,
    width,
    outs,
    epsilon,
    NORM: tl.constexpr,
    ACTIVATION: tl.constexpr,
    GATED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    OVERLAP: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    real_n = n < outs
    first = weight + n.to(tl.int64)[:, None] * width
    second = weight + (n + outs).to(tl.int64)[:, None] * width
    found = tl.zeros((BLOCK_N,), tl.float32)
    widened = tl.zeros((BLOCK_N,), tl.float32)
    total = tl.zeros((BLOCK_K,), tl.float32)
    square = tl.zeros((BLOCK_K,), tl.float32)
    for start in range(0, width, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        real = real_n[:, None] & (k < width)[None, :]
        w = tl.load(first + k[None, :], real, other=0.0)
        gate = w
        if GATED:
            w = tl.load(second + k[None, :], real, other=0.0)
        if OVERLAP:  # weights are on their way while the kernel before still writes x
            gdc_wait()
            gdc_launch_dependents()
        part = tl.load(x + k, k < width, other=0.0).to(tl.float32)
        found += tl.sum(gate.to(tl.float32) * part[None, :], axis=1)
        if GATED:
            widened += tl.sum(w.to(tl.float32) * part[None, :], axis=1)
        total += part
        square += part * part
    if NORM == "layer":
        mean = tl.sum(total, axis=0) / width
        found -= mean * tl.load(sums + n, real_n, other=0.0)
        if GATED:
            widened -= mean * tl.load(sums + outs + n, real_n, other=0.0)
        scale = tl.rsqrt(tl.sum(square, axis=0) / width - mean * mean + epsilon)
        found, widened = found * scale, widened * scale
    if NORM == "rms":
        scale = tl.rsqrt(tl.sum(square, axis=0) / width + epsilon)
        found, widened = found * scale, widened * scale
    if BIAS:
        found += tl.load(bias + n, real_n, other=0.0).to(tl.float32)
        if GATED:
            widened += tl.load(bias + outs + n, real_n, other=0.0).to(tl.float32)
    found = activated(found, ACTIVATION)
    if GATED:
        found = found * widened
    if RESIDUAL:
        found += tl.load(residual + n, real_n, other=0.0).to(tl.float32)
    tl.store(y + n, found.to(y.dtype.element_ty), real_n)


@triton.jit
def moments_kernel(x, moments, rows, width, BLOCK_K: tl.constexpr) -> None:
    m = tl.program_id(0)
    total = tl.zeros((BLOCK_K,), tl.float32)
    square = tl.zeros((BLOCK_K,), tl.float32)
    for start in range(0, width, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        part = tl.load(x + m * width + k, k < width, other=0.0).to(tl.float32)
        total += part
        square += part * part
    tl.store(moments + m, tl.sum(total, axis=0) / width)
    tl.store(moments + rows + m, tl.sum(square, axis=0) / width)


# Only products read the tiles of vectors: if sums for a norm did, too, Triton 3.6 would overwrite
# them too early, since products of 64 rows run on while the next tiles are loaded.
@triton.jit(do_not_specialize=["rows"])  # a kernel for all numbers of them
def rows_kernel(
    x,
    weight,
    bias,
    sums,
    moments,
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
    for start in range(0, width, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        real_k = k < width
        real = real_n[:, None] & real_k[None, :]
        part = tl.load(
            x + m[:, None] * width + k[None, :], real_m[:, None] & real_k[None, :], other=0.0
        )
        w = tl.load(first + k[None, :], real, other=0.0)
        found = tl.dot(part, tl.trans(w), found, input_precision="ieee")
        if GATED:
            w = tl.load(second + k[None, :], real, other=0.0)
            widened = tl.dot(part, tl.trans(w), widened, input_precision="ieee")
    if NORM != "none":
        power = tl.load(moments + rows + m, real_m, other=1.0)
        if NORM == "layer":
            mean = tl.load(moments + m, real_m, other=0.0)
            found -= mean[:, None] * tl.load(sums + n, real_n, other=0.0)[None, :]
            if GATED:
                widened -= mean[:, None] * tl.load(sums + outs + n, real_n, other=0.0)[None, :]
            power -= mean * mean
        scale = tl.rsqrt(power + epsilon)
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
    bias_or_any = weight if bias is None else bias
    sums_or_any = weight if sums is None else sums
    residual_or_any = x if residual is None else residual
    kind: dict[str, Any] = {
        "NORM": norm or "none",
        "ACTIVATION": activation or "none",
        "GATED": gated,
        "BIAS": bias is not None,
        "RESIDUAL": residual is not None,
    }
    if rows == 1:
        overlap, columns = can_overlap(x.device), row_columns(outs)
        row_kernel[(triton.cdiv(outs, columns),)](
            x,
            weight,
            bias_or_any,
            sums_or_any,
            residual_or_any,
            y,
            width,
            outs,
            epsilon,
            **kind,
            OVERLAP=overlap,
            BLOCK_N=columns,
            BLOCK_K=min(ROW_TILE // columns, triton.next_power_of_2(width)),
            num_warps=4,
            launch_pdl=overlap,
        )
        return y
    moments = x
    if norm is not None:
        moments = torch.empty(2, rows, dtype=torch.float32, device=x.device)
        channels = min(4096, triton.next_power_of_2(width))
        moments_kernel[(rows,)](x, moments, rows, width, BLOCK_K=channels, num_warps=4)
    block_m, block_n, block_k = tile(rows, outs, x.element_size(), normed=norm is not None)
    block_n //= 2 if gated else 1
    rows_kernel[(triton.cdiv(outs, block_n), triton.cdiv(rows, block_m))](
        x,
        weight,
        bias_or_any,
        sums_or_any,
        moments,
        residual_or_any,
        y,
        rows,
        width,
        outs,
        epsilon,
        **kind,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=4,
        num_stages=4,
    )
    return y


def row_columns(outs: int) -> int:
    """Columns that a program computes for a single vector."""
    return next((n for n in (16, 8) if outs >= PROGRAMS * n), 4)


def tile(rows: int, outs: int, bytes_each: int, *, normed: bool) -> tuple[int, int, int]:
    """Vectors, rows of the weight and channels that a program multiplies at once.

    Products in fp32 are not those of tensor cores, and more vectors would only take registers.
    """
    block_m = min(MOST_ROWS if bytes_each < 4 else 16, max(16, triton.next_power_of_2(rows)))
    if rows > MOST_ROWS:
        return block_m, 128, 128 // bytes_each
    if outs >= MANY_OUTS:
        return block_m, 64, 128 // bytes_each
    if normed:
        return block_m, 32, 256 // bytes_each
    return 16, 32, 512 // bytes_each
