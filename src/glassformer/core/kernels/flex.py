"""flex: masks and biases compiled into one kernel, so that no T x S table is ever materialised.

PyTorch's flex_attention takes a rule for what may be seen and a rule for what is added to a score;
`Mask.rule` and a `DistanceBias` are those rules. On CUDA it is compiled; elsewhere it runs
uncompiled, which is correct but slow.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.core.kernels.call import Call, Kernel, Supports
from glassformer.core.layout import Layout
from glassformer.core.shapes import Answers, Keys, Queries, Values

LONG = 8192  # from this length on, skipping hidden blocks pays for the block mask
CHEAP = ((None, None), (None, 0))  # bands that the other kernels never materialise


def attend(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Attention by rules; a packed batch is one long row, split into sequences by the mask."""
    packed = call.queries.is_packed
    if packed:
        q, k, v = as_one_row(q), as_one_row(k), as_one_row(v)
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


def block_mask(q: Queries, k: Keys, call: Call) -> Any:
    """Who may see whom, in blocks; built once per batch and shared by all layers."""
    state = None if torch.compiler.is_compiling() else versions(call.queries, call.keys)
    if state is None:
        return new_block_mask(q, k, call)
    memo, key = call.queries.memo, (call.mask, None if call.keys is call.queries else call.keys)
    if key not in memo or memo[key][0] != state:
        with torch.inference_mode(False):  # a training step may use it next
            memo[key] = state, new_block_mask(q, k, call)
    return memo[key][1]


def new_block_mask(q: Queries, k: Keys, call: Call) -> Any:
    """The mask over these rows, with padding and other sequences hidden."""
    from torch.nn.attention.flex_attention import create_block_mask

    q_row, q_at, _ = token_places(call.queries)
    k_row, k_at, k_real = token_places(call.keys)
    sees = call.mask.rule(q.device)
    return create_block_mask(
        lambda b, h, i, j: (
            sees(q_row[b, i], q_at[b, i], k_at[b, j]) & k_real[b, j] & (q_row[b, i] == k_row[b, j])
        ),
        len(q),
        None,
        q.shape[2],
        k.shape[2],
        device=q.device,
    )


def versions(*layouts: Layout) -> tuple[int, ...] | None:
    """How often the layouts were changed in place; None if their tensors keep no version."""
    fields = [(layout.row_lengths, layout.starts, layout.row_of) for layout in layouts]
    tensors = [x for layout in fields for x in layout if x is not None]
    if any(x.is_inference() for x in tensors):
        return None
    return tuple(x._version for x in tensors)


def score_rule(call: Call) -> Callable[..., Tensor] | None:
    """What becomes of a score: it is capped, and the position scheme adds to it."""
    limit, add = call.softcap, bias_rule(call)
    if limit is None:
        return add
    if add is None:
        return lambda score, b, h, i, j: limit * torch.tanh(score / limit)
    return lambda score, b, h, i, j: add(limit * torch.tanh(score / limit), b, h, i, j)


def bias_rule(call: Call) -> Callable[..., Tensor] | None:
    """What the position scheme adds to a score."""
    if call.bias is None:
        return None
    (_, q_at, _), (_, k_at, _) = token_places(call.queries), token_places(call.keys)
    table, low, last = call.bias.table, call.bias.low, call.bias.table.shape[-1] - 1
    if not call.bias.by_query:
        return lambda score, b, h, i, j: (
            score + table[h, (k_at[b, j] - q_at[b, i] - low).clamp(0, last)]
        )
    table = as_one_row(table) if call.queries.is_packed else table
    return lambda score, b, h, i, j: (
        score + table[b, h, i, (k_at[b, j] - q_at[b, i] - low).clamp(0, last)]
    )


def as_one_row(x: Float[Tensor, "N H K"]) -> Float[Tensor, "1 H N K"]:
    """A pack as a batch of one."""
    return x.transpose(0, 1)[None]


def token_places(
    layout: Layout,
) -> tuple[Int[Tensor, "b T"], Int[Tensor, "b T"], Bool[Tensor, "b T"]]:
    """The row and position of every token, and whether it is real; a pack is one long row."""
    if layout.row_of is not None:
        return layout.row_of[None], layout.positions[None], layout.row_of[None] >= 0
    rows = torch.arange(layout.rows, device=layout.device)[:, None]
    shape = (layout.rows, layout.longest)
    return rows.expand(shape), layout.positions.expand(shape), layout.real


@cache
def flex_attention(device: str) -> Callable[..., Answers]:
    """PyTorch's function, compiled once on CUDA."""
    from torch.nn.attention import flex_attention as library

    if device == "cuda":
        return cast(Callable[..., Answers], torch.compile(library.flex_attention, dynamic=True))

    def uncompiled(*args: Any, **kwargs: Any) -> Answers:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
            return cast(Answers, library.flex_attention(*args, **kwargs))

    return uncompiled


def suits(q: Queries, call: Call) -> bool:
    """Long sequences on CUDA whose mask, bias or scores the other kernels would materialise."""
    altered = call.bias is not None or call.softcap is not None
    materialised = altered or call.mask.band not in CHEAP
    return q.is_cuda and min(call.queries.longest, call.keys.longest) >= LONG and materialised


FLEX = Kernel(
    run=attend,
    form="either",
    supports={
        "cpu": Supports(softcap=True, dropout=False, gradient=False),
        "cuda": Supports(softcap=True, dropout=False),
    },
    suits=suits,
)
