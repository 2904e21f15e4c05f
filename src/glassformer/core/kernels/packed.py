"""packed: sequences of different lengths end to end, so that no time is spent on padding.

On CUDA this is PyTorch's variable-length flash attention; for short rows, of which its large tiles
hold little, memory-efficient attention, whose tiles are smaller. On a CPU, where PyTorch has
neither, rows of about the same length go through `fused` together.
"""

import math
from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.kernels import fused
from glassformer.core.kernels.call import Call, Kernel, Supports
from glassformer.core.kernels.short_rows import short_rows
from glassformer.core.layout import Layout
from glassformer.core.masks.base import Band
from glassformer.core.shapes import Answers, Keys, Queries, Values

EVEN = 8  # flash attention needs head widths that are a multiple of this
SHORT = 128  # tokens in the longest row, up to which small tiles are faster than flash attention's
SMALL_TILED: dict[Band | None, int] = {
    (None, None): 0,
    (None, 0): 2,
}  # bands, and what the operator calls them
ANOTHER_CALL = 4e6  # multiplications that take about as long as one more call to `fused`


def attend(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Attention of packed queries over packed keys, row by row."""
    return variable_length(q, k, v, call) if q.is_cuda else group_by_group(q, k, v, call)


def variable_length(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """One kernel for all rows; it aligns a band with the end of each, as `aligned` does."""
    width, shared = v.shape[-1], q.shape[1] // k.shape[1]
    even = EVEN * math.ceil(max(q.shape[-1], width) / EVEN)
    q, k, v = (fused.widened(x, even) for x in (q, k, v))
    if shared > 1:
        k, v = (x.repeat_interleave(shared, dim=1) for x in (k, v))
    short = call.keys.longest <= SHORT and call.mask.band in SMALL_TILED
    return (small_tiles if short else flash)(q, k, v, call)[..., :width]


def flash(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Flash attention; any band."""
    from torch.nn.attention.varlen import varlen_attn

    assert call.mask.band is not None
    before, after = (-1 if limit is None else limit for limit in call.mask.band)
    answer = varlen_attn(
        q,
        k,
        v,
        call.queries.bounds,
        call.keys.bounds,
        call.queries.longest,
        call.keys.longest,
        scale=call.scale,
        window_size=(before, after),
    )
    return cast(Tensor, answer)


def small_tiles(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Memory-efficient attention; all keys of a row, or those up to the query."""
    answer, _ = short_rows(
        q,
        k,
        v,
        call.queries.bounds,
        call.keys.bounds,
        call.queries.longest,
        call.keys.longest,
        SMALL_TILED[call.mask.band],
        call.scale,
    )
    return cast(Tensor, answer)


def group_by_group(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Rows of about the same length together, padded only to the longest of their group."""
    if not len(q):
        return q.new_zeros(0, q.shape[1], v.shape[-1])
    answers, tokens = [], []
    for rows in groups_of(call.queries.lengths.tolist(), call.keys.lengths.tolist(), q[0].numel()):
        ours, queries = part(call.queries, rows)
        theirs, keys = part(call.keys, rows)
        bias = call.bias
        if bias is not None and bias.by_query:
            bias = replace(bias, table=by_row(bias.table, ours))
        one = replace(call, queries=queries, keys=keys, bias=bias)
        answer = fused.attend(by_row(q, ours), by_row(k, theirs), by_row(v, theirs), one)
        answers.append(answer.transpose(1, 2)[queries.real])
        tokens.append(ours[queries.real])
    return torch.cat(answers)[torch.cat(tokens).argsort()]


def groups_of(queries: list[int], keys: list[int], width: int) -> list[list[int]]:
    """Row indices, longest first; a new group where padding would cost more than another call."""
    rows = sorted(range(len(queries)), key=lambda row: (keys[row], queries[row]), reverse=True)
    groups: list[list[int]] = []
    waste, tall, wide = math.inf, 0, 0
    for row in rows:
        waste += (max(tall, queries[row]) * wide - queries[row] * keys[row]) * width
        if waste > ANOTHER_CALL:
            groups.append([])
            waste, tall, wide = 0, 0, keys[row]
        tall = max(tall, queries[row])
        groups[-1].append(row)
    return groups


def part(layout: Layout, rows: list[int]) -> tuple[Int[Tensor, "b T"], Layout]:
    """Where the tokens of these rows lie in the pack, and their layout in padded form."""
    chosen = torch.tensor(rows)
    lengths = layout.lengths[chosen]
    alone = Layout.padded(lengths)
    if layout.starts is not None:
        starts = layout.starts.expand(layout.rows)[chosen]
        alone = alone.shifted(starts, layout.reach)
    tokens = layout.bounds[chosen, None] + torch.arange(alone.longest)
    return tokens.clamp(max=int(layout.bounds[-1]) - 1), alone


def by_row(x: Float[Tensor, "N H K"], tokens: Int[Tensor, "b T"]) -> Float[Tensor, "b H T K"]:
    """These tokens of the pack as padded rows; the content of the padding is never used."""
    return x[tokens].transpose(1, 2)


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
            widest=256,
        ),
    },
    suits=lambda q, call: call.queries.is_packed and call.keys.is_packed,
)
