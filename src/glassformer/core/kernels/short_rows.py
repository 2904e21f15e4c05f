"""Memory-efficient attention (Rabe and Staats, 2021) over packed rows, for GPUs.

Its tiles are small, so that short rows waste little of them. PyTorch has the kernels, but cannot
compile their backward pass; as operators of our own they can be compiled.
"""

import math
from typing import Any

import torch
from torch import Tensor

LSE_STEP = 32  # the kernels pad rows of log-sum-exp to a multiple of this


@torch.library.custom_op("glassformer::short_rows", mutates_args=(), device_types="cuda")
def short_rows(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    mask: int,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Answers (N, H, K), and the log-sum-exp of the scores.

    Args:
        query, key, value: (N, H, K) and (M, H, K), packed.
        cu_seq_q, cu_seq_k: (B + 1,) where each row begins, and the total.
        max_q, max_k: No row is longer.
        mask: 0 for all keys of a row, 2 for those up to the query, aligned with the last.
    """
    answer, lse, *_ = torch.ops.aten._efficient_attention_forward(
        query[None],
        key[None],
        value[None],
        None,
        cu_seq_q,
        cu_seq_k,
        max_q,
        max_k,
        0.0,
        mask,
        True,
        scale=scale,
    )
    return answer[0], lse


@short_rows.register_fake
def _(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    *_: Any,
) -> tuple[Tensor, Tensor]:
    tokens, heads = query.shape[:2]
    rows, padded = len(cu_seq_q) - 1, LSE_STEP * math.ceil(max_q / LSE_STEP)
    answer = query.new_empty(tokens, heads, value.shape[-1])
    return answer, query.new_empty(rows, heads, padded, dtype=torch.float32)


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
    max_q: int,
    max_k: int,
    mask: int,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, key and value."""
    no_seed = torch.zeros((), dtype=torch.long)  # there is no dropout
    grads = torch.ops.aten._efficient_attention_backward(
        grad.contiguous()[None],
        query[None],
        key[None],
        value[None],
        None,
        answer[None],
        cu_seq_q,
        cu_seq_k,
        max_q,
        max_k,
        lse,
        0.0,
        no_seed,
        no_seed,
        mask,
        False,
        scale=scale,
    )
    return grads[0][0], grads[1][0], grads[2][0]


@short_rows_backward.register_fake
def _(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return query.new_empty(query.shape), key.new_empty(key.shape), value.new_empty(value.shape)


def _keep(ctx: torch.autograd.function.FunctionCtx, inputs: tuple, output: tuple) -> None:
    query, key, value, cu_seq_q, cu_seq_k, *ctx.rest = inputs  # type: ignore[attr-defined]
    ctx.save_for_backward(query, key, value, *output, cu_seq_q, cu_seq_k)


def _gradients(ctx: torch.autograd.function.FunctionCtx, grad: Tensor, _: Tensor) -> tuple:
    grads = short_rows_backward(grad, *ctx.saved_tensors, *ctx.rest)  # type: ignore[attr-defined]
    return *grads, None, None, None, None, None, None


short_rows.register_autograd(_gradients, setup_context=_keep)
