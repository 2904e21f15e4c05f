"""A step of a model that is laid out for steps, one token per row, wherever its past lies."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.core.positions import Position
from glassformer.core.positions.rotary import Rotary
from glassformer.core.scoring import capped
from glassformer.models.incremental.fused import FusedModel

Turns = tuple[Float[Tensor, "B half"], Float[Tensor, "B half"]]  # cosines and sines
# (number of the layer, heads of queries, keys and values, turns) -> answers
Attend = Callable[
    [int, Float[Tensor, "B HGG K"], Turns | None],
    Float[Tensor, "B H K"],
]


def fused_scores(
    fused: FusedModel, tokens: Int[Tensor, " B"], at: Layout, attend: Attend
) -> Float[Tensor, "B V"]:
    """Scores of the next token of every row.

    Args:
        at: One token per row, at its position.
        attend: Self-attention, which keeps the newest keys and values.
    """
    position, turns = fused.position, None
    x = F.embedding(tokens, fused.table)  # (B, D)
    if isinstance(position, Rotary) and at.starts is not None:
        turns = position.cos_sin(at.starts)
    elif type(position) is not Position:
        x = position.embed(x[:, None], at)[:, 0].to(fused.dtype)
    for number, layer in enumerate(fused.layers):
        heads = layer.projection(x).unflatten(-1, (-1, layer.attention.width))  # (B, H + 2 G, K)
        attended = layer.out(attend(number, heads, turns).flatten(1), x)
        x = layer.narrow(layer.widen(x if layer.parallel else attended), attended)
    return capped(fused.head(x), fused.softcap)
