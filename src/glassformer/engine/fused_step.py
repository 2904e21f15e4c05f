"""Tokens through a model that is laid out for steps (`FusedModel`), wherever their past lies."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.core.positions import Position
from glassformer.core.positions.rotary import Rotary, Turns
from glassformer.core.scoring import capped
from glassformer.models.incremental.fused import FusedModel

# (number of the layer, heads of queries, keys and values) -> answers
Attend = Callable[[int, Float[Tensor, "N HGG K"]], Float[Tensor, "N H K"]]


def fused_scores(
    fused: FusedModel,
    tokens: Int[Tensor, " N"],
    layout: Layout,
    attend: Attend,
    last: Int[Tensor, " B"] | None = None,
) -> Float[Tensor, "B V"]:
    """Scores of the tokens that follow.

    Args:
        layout: Of the tokens, packed, or one per row.
        attend: Self-attention, which keeps the newest keys and values.
        last: Which tokens to score after; by default, all.
    """
    x = embedded(fused, tokens, layout)
    for number, layer in enumerate(fused.layers):
        heads = layer.projection(x).unflatten(-1, (-1, layer.attention.width))  # (N, H + 2 G, K)
        attended = layer.out(attend(number, heads).flatten(1), x)
        x = layer.narrow(layer.widen(x if layer.parallel else attended), attended)
    return capped(fused.head(x if last is None else x[last]), fused.softcap)


def embedded(fused: FusedModel, tokens: Int[Tensor, " N"], layout: Layout) -> Float[Tensor, "N D"]:
    """The vectors of tokens, before the first layer."""
    x, position = F.embedding(tokens, fused.table), fused.position  # (N, D)
    if isinstance(position, Rotary) or type(position) is Position:
        return x
    given = x if layout.is_packed else x[:, None]
    return position.embed(given, layout).reshape(x.shape).to(fused.dtype)


def turns_at(fused: FusedModel, positions: Int[Tensor, " N"]) -> Turns | None:
    """How queries and keys at these positions are rotated; None if they are not."""
    return fused.position.cos_sin(positions) if isinstance(fused.position, Rotary) else None
