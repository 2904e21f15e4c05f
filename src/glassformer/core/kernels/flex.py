"""flex: masks and biases compiled into one kernel, so that no T x S table is ever laid out.

PyTorch's flex_attention takes a rule for what may be seen and a rule for what a score gains;
`Mask.sees` and a `DistanceBias` are those rules. On CUDA it is compiled; elsewhere it runs
uncompiled, which is correct and slow.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.core.kernels.call import Call, Kernel, Supports
from glassformer.core.layout import Layout
from glassformer.core.shapes import ByHead

LONG = 1024  # from here on, skipping what is hidden pays for building the block mask
CHEAP = ((None, None), (None, 0))  # bands that the other kernels never lay out


def attend(q: ByHead, k: ByHead, v: ByHead, call: Call) -> ByHead:
    """Attention by rules; a packed batch is one long row of strangers who do not see each other."""
    packed = call.queries.is_packed
    if packed:
        q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))  # (1, H, N, K)
    answer = flex_attention(q.device.type)(
        q,
        k,
        v,
        score_mod=score_rule(call),
        block_mask=block_mask(q, k, call),
        scale=call.scale,
        enable_gqa=q.shape[1] != k.shape[1],
    )
    return answer[0].transpose(0, 1) if packed else answer


def block_mask(q: ByHead, k: ByHead, call: Call) -> Any:
    """The mask over these tokens, with padding and strangers hidden, in blocks."""
    from torch.nn.attention.flex_attention import create_block_mask

    q_row, q_at = whereabouts(call.queries)
    k_row, k_at = whereabouts(call.keys)

    def in_pack(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return call.mask.sees(q_row[i], q_at[i], k_at[j]) & (q_row[i] == k_row[j])

    def in_rows(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return call.mask.sees(b, q_at[b, i], k_at[b, j]) & (j < lengths[b])

    lengths = call.keys.lengths
    rule = in_pack if call.queries.is_packed else in_rows
    return create_block_mask(rule, len(q), None, q.shape[2], k.shape[2], device=q.device)


def score_rule(call: Call) -> Callable[..., Tensor] | None:
    """What the position scheme adds to a score."""
    bias = call.bias
    if bias is None:
        return None
    (_, q_at), (_, k_at) = whereabouts(call.queries), whereabouts(call.keys)
    packed, table, last = call.queries.is_packed, bias.table, bias.table.shape[-1] - 1

    def add(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        distance = k_at[j] - q_at[i] if packed else k_at[b, j] - q_at[b, i]
        entry = (distance - bias.low).clamp(0, last)
        if not bias.by_query:
            return score + table[h, entry]
        return score + (table[i, h, entry] if packed else table[b, h, i, entry])

    return add


def whereabouts(layout: Layout) -> tuple[Int[Tensor, "..."], Int[Tensor, "..."]]:
    """The row and the position of every token: (N,) packed, (B, T) padded."""
    if layout.row_of is not None:
        return layout.row_of, layout.positions
    rows = torch.arange(layout.rows, device=layout.device)[:, None]
    shape = (layout.rows, layout.longest)
    return rows.expand(shape), layout.positions.expand(shape)


@cache
def flex_attention(device: str) -> Callable[..., ByHead]:
    """PyTorch's function, compiled once where compiling is what makes it fast."""
    from torch.nn.attention import flex_attention as library

    if device == "cuda":
        return cast(Callable[..., ByHead], torch.compile(library.flex_attention, dynamic=True))

    def uncompiled(*args: Any, **kwargs: Any) -> ByHead:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
            return cast(ByHead, library.flex_attention(*args, **kwargs))

    return uncompiled


def suits(q: ByHead, call: Call) -> bool:
    """Long sequences on CUDA whose mask or bias the other kernels would lay out."""
    laid_out = call.bias is not None or call.mask.band not in CHEAP
    return q.is_cuda and min(call.queries.longest, call.keys.longest) >= LONG and laid_out


FLEX = Kernel(
    run=attend,
    form="either",
    supports={
        "cpu": Supports(dropout=False, gradient=False),
        "cuda": Supports(dropout=False),
    },
    suits=suits,
)
