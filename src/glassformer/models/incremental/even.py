"""Even steps: fused steps on a CPU where all rows are at one position, each with one branch.

With a small model a CPU spends most of a step on calling functions, so here are as few as possible:
queries, keys and values are rotated together (values by nothing) into one buffer whose views are
made once, and products are added to the vectors in place. `Layer.__call__` is the one to read.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.core.caches import BranchingCache
from glassformer.core.steps.attention import Rotation
from glassformer.models.incremental.layer import Layer


class EvenSteps:
    """The layers of a model, prepared for a number of rows.

    Args:
        caches: One per layer, which stay where they are.
        rotation: For all positions; None if there is none.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        caches: Sequence[BranchingCache],
        rows: int,
        rotation: Rotation | None,
    ) -> None:
        self.layers, self.rotation = layers, rotation
        self.caches = [cache.kept() for cache in caches]
        like, attention = self.caches[0][0], layers[0].attention
        heads, groups, width = attention.heads, attention.kv_heads, attention.width
        self.scale, self.shared = attention.scale, heads != groups
        self.newest = like.new_empty(rows, heads + 2 * groups, width)
        self.q, self.k, self.v = self.newest[:, :, None].split((heads, groups, groups), 1)
        self.cos, self.sin = torch.ones_like(self.newest[0]), torch.zeros_like(self.newest[0])
        both = heads + groups
        self.turning = self.cos[:both], self.sin[:both]

    def __call__(self, x: Float[Tensor, "M D"], position: int) -> Float[Tensor, "M D"]:
        """The vectors after the last layer; `x` is overwritten."""
        if self.rotation is not None:
            cos, sin = self.turning
            cos.copy_(self.rotation.cos[position])
            sin.copy_(self.rotation.sin[position])
        for layer, (k, v) in zip(self.layers, self.caches, strict=True):
            heads = layer.projection.reference(x).view(self.newest.shape)
            hidden = layer.widen.reference(x) if layer.parallel else None
            layer.out.add_to(x, self._attend(heads, k, v, position))
            layer.narrow.add_to(x, layer.widen.reference(x) if hidden is None else hidden)
        return x

    def _attend(
        self,
        heads: Float[Tensor, "M heads K"],
        k: Float[Tensor, "M G S K"],
        v: Float[Tensor, "M G S K"],
        position: int,
    ) -> Float[Tensor, "M D"]:
        if self.rotation is None:
            self.newest.copy_(heads)
        else:
            partners = self.rotation.partners(heads)
            torch.addcmul(heads.mul_(self.cos), partners, self.sin, out=self.newest)
        k[:, :, position : position + 1], v[:, :, position : position + 1] = self.k, self.v
        answer = F.scaled_dot_product_attention(
            self.q,
            k[:, :, : position + 1],
            v[:, :, : position + 1],
            scale=self.scale,
            enable_gqa=self.shared,
        )
        return answer.reshape(len(heads), -1)
