"""Even steps: fused steps on a CPU where all rows are at one position, each with one branch.

With a small model a CPU spends most of a step on calling functions, so here are as few as possible:
queries, keys and values are rotated together (values by nothing) into one buffer whose views are
made once, products are added to the vectors in place, and attention is two products, in which the
heads that share keys are rows of one matrix. `Layer.__call__` is the one to read.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.steps.attention import Rotation
from glassformer.models.incremental.layer import Layer

KeysAndValues = tuple[Float[Tensor, "M G S K"], Float[Tensor, "M G S K"]]


class EvenSteps:
    """The layers of a model, prepared for a number of rows.

    Args:
        caches: The keys and values of each layer, which stay where they are.
        rotation: For all positions; None if there is none.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        caches: Sequence[KeysAndValues],
        rotation: Rotation | None,
    ) -> None:
        self.layers, self.rotation, self.caches = layers, rotation, caches
        like, attention = caches[0][0], layers[0].attention
        rows, groups, _, width = like.shape
        heads = attention.heads
        self.pasts = [(k.flatten(0, 1).mT, v.flatten(0, 1)) for k, v in caches]
        self.newest = like.new_empty(rows, heads + 2 * groups, width)
        self.q, k, v = self.newest.split((heads, groups, groups), 1)
        self.k, self.v = k[:, :, None], v[:, :, None]
        self.grouped = rows * groups, heads // groups, width
        # What queries, keys and values are multiplied with; that of queries scales the scores.
        self.cos = like.new_ones(heads + 2 * groups, 1)
        self.cos[:heads] = attention.scale
        both = heads + groups
        self.scales = self.cos[:both]
        if rotation is not None:
            self.cos, self.sin = self.cos.repeat(1, width), torch.zeros_like(self.newest[0])
            self.turning = self.cos[:both], self.sin[:both]

    def __call__(self, x: Float[Tensor, "M D"], position: int) -> Float[Tensor, "M D"]:
        """The vectors after the last layer; `x` is overwritten."""
        if self.rotation is not None:
            cos, sin = self.turning
            torch.mul(self.rotation.cos[position], self.scales, out=cos)
            torch.mul(self.rotation.sin[position], self.scales, out=sin)
        for number, layer in enumerate(self.layers):
            heads = layer.projection.reference(x).view(self.newest.shape)
            hidden = layer.widen.reference(x) if layer.parallel else None
            layer.out.add_to(x, self._attend(heads, number, position))
            layer.narrow.add_to(x, layer.widen.reference(x) if hidden is None else hidden)
        return x

    def _attend(
        self, heads: Float[Tensor, "M heads K"], number: int, position: int
    ) -> Float[Tensor, "M D"]:
        if self.rotation is None:
            torch.mul(heads, self.cos, out=self.newest)
        else:
            partners = self.rotation.partners(heads)
            torch.addcmul(heads.mul_(self.cos), partners, self.sin, out=self.newest)
        after, (k, v) = position + 1, self.caches[number]
        k[:, :, position:after], v[:, :, position:after] = self.k, self.v
        keys, values = self.pasts[number]
        scores = torch.bmm(self.q.reshape(self.grouped), keys[:, :, :after])  # (M G, H / G, S)
        return torch.bmm(scores.softmax(-1), values[:, :after]).view(len(heads), -1)
