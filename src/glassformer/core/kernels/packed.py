"""packed: sequences of different lengths end to end, so that no time is spent on padding.

On CUDA this is PyTorch's variable-length flash attention; for short rows, which fill little of its
large tiles, kernels of our own that put several rows into one. On a CPU, where PyTorch has none,
rows of about the same length go through `fused` together.
"""

import math
from dataclasses import dataclass, replace
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.kernels import fused
from glassformer.core.kernels.call import Call, Kernel, Supports
from glassformer.core.kernels.short_rows import HAS_KERNELS, short_rows
from glassformer.core.layout import Layout
from glassformer.core.shapes import Answers, Keys, Queries, Values

EVEN = 8  # flash attention needs head widths that are a multiple of this
SHORT = 384  # tokens in a row on average, up to which tiles of several rows are faster
EVERYTHING, CAUSAL = (None, None), (None, 0)  # the bands that they support
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
    short = HAS_KERNELS and len(k) <= SHORT * call.keys.rows
    simple = call.mask.band in (EVERYTHING, CAUSAL)
    return (shared_tiles if short and simple else flash)(q, k, v, call)[..., :width]


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


def shared_tiles(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Several short rows in a tile; all keys of a row, or those up to the query."""
    rows = call.queries.row_of, call.keys.row_of
    assert rows[0] is not None  # a packed layout has them
    assert rows[1] is not None
    bounds, is_causal = (call.queries.bounds, call.keys.bounds), call.mask.band == CAUSAL
    return cast(Tensor, short_rows(q, k, v, *bounds, *rows, is_causal, call.scale)[0])


def group_by_group(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Rows of about the same length together, padded only to the longest of their group."""
    if not len(q):
        return q.new_zeros(0, q.shape[1], v.shape[-1])
    groups, order = grouping(call, q[0].numel())
    answers = []
    for queries, keys in groups:
        bias = call.bias
        if bias is not None and bias.by_query:
            bias = replace(bias, table=queries.padded(bias.table))
        one = replace(call, queries=queries.layout, keys=keys.layout, bias=bias)
        answer = fused.attend(queries.padded(q), keys.padded(k), keys.padded(v), one)
        answers.append(queries.packed(answer))
    return answers[0] if order is None else torch.cat(answers)[order]


@dataclass(frozen=True, slots=True)
class Part:
    """One side of a group of rows: where its tokens lie in the pack and in padded rows.

    Attributes:
        tokens: Their places in the pack; None for all of them, in their order.
        slots: Their places in the flattened padded rows; None for rows of one length.
        layout: Of the padded rows.
    """

    tokens: Int[Tensor, " n"] | None
    slots: Int[Tensor, " n"] | None
    layout: Layout

    def padded(self, x: Float[Tensor, "N H K"]) -> Float[Tensor, "b H T K"]:
        """These tokens as padded rows, with zeros in the padding."""
        rows = x if self.tokens is None else x[self.tokens]
        if self.slots is not None:
            empty = x.new_zeros(self.layout.rows * self.layout.longest, *x.shape[1:])
            rows = empty.index_copy(0, self.slots, rows)
        return rows.unflatten(0, (self.layout.rows, self.layout.longest)).transpose(1, 2)

    def packed(self, x: Float[Tensor, "b H T K"]) -> Float[Tensor, "n H K"]:
        """The same tokens end to end."""
        rows = x.transpose(1, 2).flatten(0, 1)
        return rows if self.slots is None else rows[self.slots]


def grouping(call: Call, width: int) -> tuple[list[tuple[Part, Part]], Int[Tensor, " N"] | None]:
    """The groups of a call, and where each token of the pack lies in their answers.

    The layers of a model share layouts, so it is worked out once a batch.
    """
    same = call.keys is call.queries
    mode = torch.is_inference_mode_enabled()  # what is made in it has no place in training
    memo, key = call.queries.memo, (Part, width, None if same else call.keys, mode)
    if key not in memo:
        groups = groups_of(call.queries.lengths.tolist(), call.keys.lengths.tolist(), width)
        if len(groups) == 1:
            groups = [sorted(groups[0])]
        alone = len(groups) == 1
        queries = [part(call.queries, rows, alone) for rows in groups]
        keys = queries if same else [part(call.keys, rows, alone) for rows in groups]
        tokens = [one.tokens for one in queries if one.tokens is not None]
        order = torch.cat(tokens).argsort() if tokens else None
        memo[key] = list(zip(queries, keys, strict=True)), order
    return memo[key]


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


def part(layout: Layout, rows: list[int], alone: bool) -> Part:
    """These rows of a pack; `alone`, all of them in their order."""
    chosen = torch.tensor(rows)
    lengths = layout.lengths[chosen]
    padded, even = Layout.padded(lengths), bool((lengths == lengths[0]).all())
    if even:
        padded = Layout.full(len(rows), padded.longest)
    if layout.starts is not None:
        starts = layout.starts.expand(layout.rows)[chosen]
        padded = padded.shifted(starts, layout.reach)
    real = padded.real.expand(len(rows), -1)
    tokens = None if alone else (layout.bounds[chosen, None] + torch.arange(padded.longest))[real]
    return Part(tokens, None if even else real.flatten().nonzero()[:, 0], padded)


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
