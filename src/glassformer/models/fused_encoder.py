"""A fused encoder: the same vectors as an `Encoder`'s, in a few functions of PyTorch a layer.

A short text takes a small encoder less time to compute than to walk through its modules. So for
predictions on a CPU, encoders of the usual kind are laid out once as fused steps are
(`incremental.layer`): norms are folded into the layers after them, and queries, keys and values are
one product. Weights that change later have no effect on it. Whatever else is asked of an encoder,
such as gradients, the encoder itself answers.
"""

import copy
from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.core.caches import Cache
from glassformer.core.int8 import Int8Linear
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, everything
from glassformer.core.positions.rotary import Rotary
from glassformer.core.shapes import Vectors
from glassformer.core.steps.attention import Rotation
from glassformer.models.blocks.transformer import TransformerBlock
from glassformer.models.incremental.fused import can_fuse, rounded
from glassformer.models.incremental.layer import Layer
from glassformer.models.stacks import Encoder
from glassformer.models.transformer import Classifier


class FusedBlock(nn.Module):
    """A block, laid out; a module, so that whoever watches the layers of a model sees it."""

    def __init__(self, block: TransformerBlock) -> None:
        super().__init__()
        self.layer = Layer.of(block, torch.float32)

    def forward(
        self,
        x: Float[Tensor, "tokens D"],
        rows: int,
        rotation: Rotation | None,
        real: Bool[Tensor, "B 1 1 T"] | None,
    ) -> Float[Tensor, "tokens D"]:
        """The vectors of padded rows after this block."""
        return self.layer.among(x, rows, rotation, real)


class FusedEncoder(nn.Module):
    """An encoder, laid out, beside the encoder itself."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.dim = encoder, encoder.dim
        self.ends = encoder.position, cast(nn.Module, encoder.norm)  # sooner found in a tuple
        self.blocks = nn.ModuleList(
            FusedBlock(cast(TransformerBlock, block)) for block in encoder.blocks
        )
        self.table: Rotation | None = None  # grows with the longest row
        self.rotations: dict[int, Rotation] = {}  # of it, by length

    def forward(
        self,
        x: Vectors,
        *,
        layout: Layout,
        mask: Mask = everything,
        caches: Sequence[Cache] | None = None,
    ) -> Vectors:
        """The vectors after the last layer, in the same layout."""
        usual = mask is everything and caches is None and x.dtype == torch.float32
        plain = layout.is_packed or layout.starts is not None or layout.fillers is not None
        if not usual or plain or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
            return self.encoder(x, layout=layout, mask=mask, caches=caches)
        position, norm = self.ends
        x = position.embed(x, layout)
        real = None if layout.is_full else layout.real[:, None, None]
        rotation, y = self._rotation(layout.longest), x.flatten(0, 1)
        for block in self.blocks:
            y = block(y, layout.rows, rotation, real)
        return norm(y).view(x.shape)

    def _rotation(self, length: int) -> Rotation | None:
        """How queries and keys are rotated."""
        position, _ = self.ends
        if not isinstance(position, Rotary):
            return None
        if length not in self.rotations:
            if self.table is None or len(self.table.cos) < length:
                self.table = Rotation.of(position, rounded(length), torch.device("cpu"))
            self.rotations[length] = self.table.until(length)
        return self.rotations[length]


def with_fused_encoder(model: Classifier) -> Classifier:
    """The same model with a fused encoder; the model itself if its encoder is of another kind."""
    on_cpu = all(
        one.device.type == "cpu" and one.dtype == torch.float32 for one in model.parameters()
    )
    int8 = any(isinstance(one, Int8Linear) for one in model.encoder.modules())
    if int8 or not on_cpu or not can_fuse(model.encoder):
        return model
    twin = copy.copy(model)
    fused = FusedEncoder(cast(Encoder, model.encoder)).eval()
    twin._modules = {**model._modules, "encoder": fused}
    return twin
