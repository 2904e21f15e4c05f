"""packed: sequences of different lengths end to end, so that no time goes into padding.

On CUDA this is PyTorch's variable-length flash attention. On a CPU, where PyTorch has none, each
row is a slice of the pack and goes through `fused` by itself.
"""

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from glassformer.core.bias import DistanceBias
from glassformer.core.kernels import fused
from glassformer.core.kernels.call import Call, Kernel, Supports
from glassformer.core.layout import Layout
from glassformer.core.shapes import Answers, Keys, Queries, Values


def attend(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Attention of packed queries over packed keys, row by row."""
    return variable_length(q, k, v, call) if q.is_cuda else slice_by_slice(q, k, v, call)


def variable_length(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """One flash kernel for all rows; it counts a band from the end of each, as `aligned` says."""
    from torch.nn.attention.varlen import varlen_attn

    assert call.mask.band is not None
    before, after = (-1 if limit is None else limit for limit in call.mask.band)
    shared = q.shape[1] // k.shape[1]
    answer = varlen_attn(
        q,
        k if shared == 1 else k.repeat_interleave(shared, dim=1),
        v if shared == 1 else v.repeat_interleave(shared, dim=1),
        call.queries.bounds,
        call.keys.bounds,
        call.queries.longest,
        call.keys.longest,
        scale=call.scale,
        window_size=(before, after),
    )
    return cast(Tensor, answer)


def slice_by_slice(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Each row on its own: nothing is padded and nothing is copied."""
    q_ends, k_ends = call.queries.bounds.tolist(), call.keys.bounds.tolist()
    answers = []
    for row in range(call.queries.rows):
        ours, theirs = slice(*q_ends[row : row + 2]), slice(*k_ends[row : row + 2])
        one = replace(
            call,
            queries=row_layout(call.queries, row, ours),
            keys=row_layout(call.keys, row, theirs),
            bias=row_bias(call.bias, ours),
        )
        answers.append(fused.attend(heads(q[ours]), heads(k[theirs]), heads(v[theirs]), one))
    return torch.cat([answer[0].transpose(0, 1) for answer in answers])


def heads(x: Tensor) -> Tensor:
    """(t, H, K) -> (1, H, t, K)."""
    return x.transpose(0, 1)[None]


def row_layout(layout: Layout, row: int, where: slice) -> Layout:
    """The layout of one row, alone and full."""
    alone = Layout.full(1, where.stop - where.start, layout.device)
    if layout.starts is None:
        return alone
    return alone.shifted(
        layout.starts[row : row + 1] if len(layout.starts) > 1 else layout.starts, layout.reach
    )


def row_bias(bias: DistanceBias | None, where: slice) -> DistanceBias | None:
    """The part of a bias that belongs to one row."""
    return replace(bias, table=heads(bias.table[where])) if bias and bias.by_query else bias


PACKED = Kernel(
    run=attend,
    form="packed",
    supports={
        "cpu": Supports(masks="same for all rows"),
        "cuda": Supports(
            dtypes=frozenset({torch.float16, torch.bfloat16}),
            masks="bands",
            bias=False,
            dropout=False,
            two_widths=False,
        ),
    },
    suits=lambda q, call: call.queries.is_packed and call.keys.is_packed,
)
