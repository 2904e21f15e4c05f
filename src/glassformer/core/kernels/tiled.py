"""tiled: FlashAttention's idea in plain PyTorch, one tile of queries and keys at a time.

A softmax seems to need a whole row of scores, for their largest and their sum. But both can be kept
up to date: when a tile raises the largest from m to m', everything so far shrinks by exp(m - m').

    m'     = max(m, largest of the tile)
    total  = exp(m - m') total  + Σ exp(scores - m')
    answer = exp(m - m') answer + exp(scores - m') v        in the end, answer / total

So nothing of size T x S is ever kept. The backward pass computes the scores of each tile again, and
their weights from one number per query, L = m + log total:

    weights = exp(scores - L)
    dv      = weightsᵀ dy
    dscores = weights (dy vᵀ - y·dy)

Milakov and Gimelshein, 2018; Dao et al., 2022. This one is to read. To be fast as well, a tile must
stay in the fast memory of a GPU, which takes a compiled kernel: `fused`, `packed` or `flex`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from glassformer.core.kernels.call import Call, Kernel, Supports, everywhere
from glassformer.core.kernels.plain import attention_scores, share
from glassformer.core.layout import Layout
from glassformer.core.shapes import Answers, Keys, Queries, Values

TILE = 128  # queries and keys in a tile
Inputs = Sequence[Tensor]  # queries, keys, values and, if there is one, the table of the bias


def attend(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Attention tile by tile, forward and backward."""
    table = [] if call.bias is None else [call.bias.table]
    return cast(Answers, Tiled.apply(call, q, k, v, *table))


class Tiled(Function):
    """Both passes; what is kept between them grows with the number of tokens, not its square."""

    @staticmethod
    def forward(ctx: Any, call: Call, *inputs: Tensor) -> Answers:
        """The answers, one row of tiles after another."""
        by_row = [answer_row(inputs, call, rows) for rows in tiles(call.queries.longest)]
        answers, logs = zip(*by_row, strict=True)
        answer = torch.cat(answers, dim=2).to(inputs[0].dtype)
        ctx.save_for_backward(*inputs, answer, torch.cat(logs, dim=2))
        ctx.call = call
        return answer

    @staticmethod
    def backward(ctx: Any, grad: Answers) -> tuple[Tensor | None, ...]:
        """The gradients, summed up over the tiles."""
        *inputs, answer, log_total = ctx.saved_tensors
        sums = [torch.zeros_like(exact(x)) for x in inputs]
        dy = exact(grad)
        pull = (dy * answer).sum(dim=-1, keepdim=True)  # y·dy, (B, H, T, 1)
        for rows in tiles(ctx.call.queries.longest):
            at_rows = [x[:, :, rows] for x in (log_total, dy, pull)]
            for columns in tiles(ctx.call.keys.longest):
                tile, call = cut(inputs, rows, columns), tile_call(ctx.call, rows, columns)
                gradients = tile_gradients(tile, call, *at_rows)
                for total, part in zip(cut(sums, rows, columns), gradients, strict=True):
                    total += part
        return None, *(total.to(x.dtype) for total, x in zip(sums, inputs, strict=True))


def answer_row(
    inputs: Inputs, call: Call, rows: slice
) -> tuple[Float[Tensor, "B H t W"], Float[Tensor, "B H t 1"]]:
    """The answers of these queries over all keys, and their L."""
    q, _, v, *_ = inputs
    answer = exact(v).new_zeros(*q[:, :, rows].shape[:-1], v.shape[-1])
    total = torch.zeros_like(answer[..., :1])
    largest = torch.full_like(total, torch.finfo(total.dtype).min / 2)  # above hidden scores
    for columns in tiles(call.keys.longest):
        tile = [exact(x) for x in cut(inputs, rows, columns)]
        scores = visible_scores(tile, tile_call(call, rows, columns))
        raised = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        weights, shrink = (scores - raised).exp(), (largest - raised).exp()
        total = total * shrink + weights.sum(dim=-1, keepdim=True)
        answer = answer * shrink + weights @ share(tile[2], tile[0])
        largest = raised
    total = total.clamp(min=1)  # the largest score counts 1; only a query that sees none has less
    return answer / total, largest + total.log()


def tile_gradients(
    tile: Inputs,
    call: Call,
    log_total: Float[Tensor, "B H t 1"],
    dy: Float[Tensor, "B H t W"],
    pull: Float[Tensor, "B H t 1"],
) -> tuple[Tensor, ...]:
    """What a tile adds to the gradients of its inputs; autograd goes from its scores to them."""
    leaves = [exact(x).detach().requires_grad_() for x in tile]
    with torch.enable_grad():
        scores, values = visible_scores(leaves, call), share(leaves[2], leaves[0])
    weights = (scores.detach() - log_total).exp()
    d_scores = weights * (dy @ values.detach().mT - pull)
    return torch.autograd.grad([scores, values], leaves, [d_scores, weights.mT @ dy])


def visible_scores(tile: Inputs, call: Call) -> Float[Tensor, "B H t s"]:
    """The scores of a tile, the lowest number for those that are hidden."""
    q, k, _, *table = tile
    if call.bias is not None:
        call = replace(call, bias=replace(call.bias, table=table[0]))
    scores, allowed = attention_scores(q, k, call), call.allowed()
    if allowed is None:
        return scores
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)


def tiles(length: int) -> Iterator[slice]:
    """Where each tile begins and ends along one axis."""
    for begin in range(0, length, TILE):
        yield slice(begin, min(begin + TILE, length))


def cut(inputs: Inputs, rows: slice, columns: slice) -> list[Tensor]:
    """What one tile needs of the inputs, as views."""
    q, k, v, *tables = inputs
    by_query = [x[:, :, rows] if x.ndim == 4 else x for x in tables]
    return [q[:, :, rows], k[:, :, columns], v[:, :, columns], *by_query]


def tile_call(call: Call, rows: slice, columns: slice) -> Call:
    """The call as one tile has it; its queries are no longer the last tokens of its keys."""
    queries, keys = stretch(call.queries, rows), stretch(call.keys, columns)
    return replace(call, queries=queries, keys=keys, aligned=False)


def stretch(layout: Layout, at: slice) -> Layout:
    """The layout of these tokens of every padded row, where they stand."""
    before, lengths = torch.full((1,), at.start, device=layout.device), layout.row_lengths
    if lengths is not None:
        before = lengths.clamp(max=at.start)  # a row that ends sooner has padding only
        lengths = (lengths - before).clamp(max=at.stop - at.start)
    starts = before if layout.starts is None else layout.starts + before
    return replace(
        layout, longest=at.stop - at.start, tokens=None, row_lengths=lengths, starts=starts
    )


def exact(x: Tensor) -> Tensor:
    """In single precision, or as it is if more precise."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


TILED = Kernel(
    run=attend,
    form="padded",
    supports=everywhere(Supports(softcap=True, dropout=False)),
    suits=lambda q, call: False,
)
