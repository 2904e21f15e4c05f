"""Even steps: fused steps on a CPU where all rows are at one position, each with one branch.

With a small model a CPU spends most of a step on calling functions, so here are as few as possible:
queries, keys and values are projected into one buffer and rotated into another, whose views are
made once, products are added to the vectors in place, and attention is two products, in which the
heads that share keys are rows of one matrix. PyTorch does not watch what is changed in place
(`inference_mode`), which saves a little of every call. `Layer.__call__` is the one to read.
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

    @torch.inference_mode()
    def __init__(
        self,
        layers: Sequence[Layer],
        caches: Sequence[KeysAndValues],
        rotation: Rotation | None,
    ) -> None:
        self.layers, self.rotation, self.caches = layers, rotation, caches
        like, attention = caches[0][0], layers[0].attention
        self.rows, groups, _, width = like.shape
        rows, heads = self.rows, attention.heads
        self.pasts = [(k.flatten(0, 1).mT, v.flatten(0, 1)) for k, v in caches]
        shape = rows, heads + 2 * groups, width
        self.heads, self.newest = like.new_empty(shape), like.new_empty(shape)
        self.projected = self.heads.flatten(1)
        self.q, k, v = self.newest.split((heads, groups, groups), 1)
        self.k, self.v = k[:, :, None], v[:, :, None]
        self.grouped = rows * groups, heads // groups, width
        # What queries, keys and values are multiplied with; that of queries scales the scores.
        self.cos = like.new_ones(heads + 2 * groups, 1)
        self.cos[:heads] = attention.scale
        if rotation is not None:
            both, half = heads + groups, rotation.rotated // 2
            self.scales = self.cos[:both]
            self.cos = self.cos.repeat(1, width)
            self.turning = self.cos[:both], like.new_empty(both, width)
            sines = self.turning[1][:, :half], self.turning[1][:, half : 2 * half]
            x, y = self.heads[:, :both], self.newest[:, :both]
            self.halves = (
                (y[..., :half], x[..., half : 2 * half], sines[0]),
                (y[..., half : 2 * half], x[..., :half], sines[1]),
            )

    @torch.inference_mode()
    def __call__(self, x: Float[Tensor, "M D"], position: int) -> Float[Tensor, "M D"]:
        """The vectors after the last layer; `x` is overwritten."""
        if self.rotation is not None:
            cos, sin = self.turning
            torch.mul(self.rotation.cos[position], self.scales, out=cos)
            torch.mul(self.rotation.sin[position], self.scales, out=sin)
        for number, layer in enumerate(self.layers):
            layer.projection.write(self.projected, x)
            hidden = layer.widen.reference(x) if layer.parallel else None
            layer.out.add_to(x, self._attend(number, position))
            layer.narrow.add_to(x, layer.widen.reference(x) if hidden is None else hidden)
        return x

    def _attend(self, number: int, position: int) -> Float[Tensor, "M D"]:
        """The answers to the queries of `heads`, whose keys and values are added to the past."""
        torch.mul(self.heads, self.cos, out=self.newest)
        if self.rotation is not None:
            for turned, partner, sin in self.halves:
                turned.addcmul_(partner, sin)
        after, (k, v) = position + 1, self.caches[number]
        k[:, :, position:after], v[:, :, position:after] = self.k, self.v
        keys, values = self.pasts[number]
        scores = torch.bmm(self.q.reshape(self.grouped), keys[:, :, :after])  # (M G, H / G, S)
        return torch.bmm(scores.softmax(-1), values[:, :after]).view(self.rows, -1)
