"""Attention over packed rows that are short, for GPUs: operators that can be compiled.

The kernels of flash attention spend at least one large tile on every row. Ours put several rows
into a tile.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._triton import has_triton

HAS_KERNELS = has_triton()
if HAS_KERNELS:
    from glassformer.core.kernels import short_rows_kernel


@torch.library.custom_op("glassformer::short_rows", mutates_args=(), device_types="cuda")
def short_rows(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    rows_q: Tensor,
    rows_k: Tensor,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Answers (N, H, K), and the logarithms of the sums of their weights.

    Args:
        query, key, value: (N, H, K) and (M, H, K), packed.
        cu_seq_q, cu_seq_k: (B + 1,) where each row begins, and the total.
        rows_q, rows_k: (N,) and (M,) the row of each token.
        causal: Whether a query sees the keys up to its own, counted from the end of the row.
    """
    q, k, v = with_whole_vectors(query, key, value)
    return short_rows_kernel.forward(q, k, v, (cu_seq_q, cu_seq_k), rows_q, causal, scale)


@short_rows.register_fake
def _(query: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    tokens, heads, _width = query.shape
    return query.new_empty(query.shape), query.new_empty(heads, tokens, dtype=torch.float32)


@torch.library.custom_op("glassformer::short_rows_backward", mutates_args=(), device_types="cuda")
def short_rows_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    answer: Tensor,
    lse: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    rows_q: Tensor,
    rows_k: Tensor,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, key and value."""
    q, k, v = with_whole_vectors(query, key, value)
    bounds, rows = (cu_seq_q, cu_seq_k), (rows_q, rows_k)
    given = grad.contiguous(), q, k, v, answer, lse
    return short_rows_kernel.backward(*given, bounds, rows, causal, scale)


@short_rows_backward.register_fake
def _(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return query.new_empty(query.shape), key.new_empty(key.shape), value.new_empty(value.shape)


def with_whole_vectors(*tensors: Tensor) -> list[Tensor]:
    """The tensors, the elements of each vector side by side."""
    return [x if x.stride(-1) == 1 else x.contiguous() for x in tensors]


def _keep(ctx: torch.autograd.function.FunctionCtx, inputs: tuple, output: tuple) -> None:
    query, key, value, *of_rows, ctx.causal, ctx.scale = inputs  # type: ignore[attr-defined]
    ctx.save_for_backward(query, key, value, *output, *of_rows)


def _gradients(ctx: Any, grad: Tensor, _: Tensor) -> tuple:
    grads = short_rows_backward(grad, *ctx.saved_tensors, ctx.causal, ctx.scale)
    return *grads, None, None, None, None, None, None


short_rows.register_autograd(_gradients, setup_context=_keep)
