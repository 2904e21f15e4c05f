"""Self-attention of the newest token of every branch, to the cache and itself.

Queries and keys are rotated, keys and values are written to the next slots of the cache, and every
branch attends to the slots of its ancestors.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import Ancestry
from glassformer.core.positions.rotary import Rotary


@dataclass(frozen=True, eq=False, slots=True)
class Rotation:
    """How each position turns the channels of a head: x cos + x[partner] sin.

    Attributes:
        rotated: How many channels, the first ones, it turns.
    """

    cos: Float[Tensor, "positions K"]
    sin: Float[Tensor, "positions K"]
    partner: Int[Tensor, " K"]
    rotated: int

    @staticmethod
    def of(position: Rotary, positions: int, device: torch.device) -> "Rotation":
        """That of a position scheme, for so many positions."""
        half, rest = position.rotated // 2, position.width - position.rotated
        cos, sin = position.cos_sin(torch.arange(positions, device=device))  # (positions, half)
        channels = torch.arange(position.width, device=device)
        partner = torch.cat([channels[half : 2 * half], channels[:half], channels[2 * half :]])
        return Rotation(
            F.pad(torch.cat([cos, cos], 1), (0, rest), value=1.0),
            F.pad(torch.cat([-sin, sin], 1), (0, rest)),
            partner,
            position.rotated,
        )

    def turned(self, x: Float[Tensor, "B W heads K"], at: Tensor) -> Float[Tensor, "B W heads K"]:
        """Queries or keys at these positions, one per row."""
        cos, sin = (table[at][:, None, None].to(x.dtype) for table in (self.cos, self.sin))
        return torch.addcmul(x * cos, x.index_select(-1, self.partner), sin)


@dataclass(frozen=True, eq=False, slots=True)
class StepAttention:
    """The self-attention of a layer, apart from its projections."""

    heads: int
    kv_heads: int
    width: int
    scale: float

    @staticmethod
    def of(layer: MultiHeadAttention) -> "StepAttention":
        """That of a layer."""
        scale = layer.scoring.scale
        return StepAttention(
            layer.heads,
            layer.kv_heads,
            layer.key_width,
            layer.key_width**-0.5 if scale is None else scale,
        )

    @property
    def keys(self) -> tuple[int, int]:
        """How many heads of keys there are, and how wide they are."""
        return self.kv_heads, self.width

    def __call__(
        self,
        qkv: Float[Tensor, "M projected"],
        k: Float[Tensor, "B G S K"],
        v: Float[Tensor, "B G S K"],
        ancestry: Ancestry,
        rotation: Rotation | None,
    ) -> Float[Tensor, "M D"]:
        """The answers of all heads side by side; token W b + w is that of branch w of row b.

        Args:
            k, v: The cache, to which the newest token of every branch is added.
            ancestry: As it was before this step.
        """
        if qkv.is_cuda:
            from glassformer.core.steps.attention_kernel import run

            return run(
                qkv,
                k,
                v,
                ancestry,
                heads=self.heads,
                scale=self.scale,
                rotation=None if rotation is None else (rotation.cos, rotation.sin),
                rotated=0 if rotation is None else rotation.rotated,
            )
        return self.reference(qkv, k, v, ancestry, rotation)

    def reference(
        self,
        qkv: Float[Tensor, "M projected"],
        k: Float[Tensor, "B G S K"],
        v: Float[Tensor, "B G S K"],
        ancestry: Ancestry,
        rotation: Rotation | None,
    ) -> Float[Tensor, "M D"]:
        """The same by functions of PyTorch."""
        rows, branches, before = len(k), ancestry.branches, ancestry.used
        qkv = qkv.view(rows, branches, -1, self.width)
        qk, new_v = qkv.split([self.heads + self.kv_heads, self.kv_heads], dim=2)
        if rotation is not None:
            qk = rotation.turned(qk, ancestry.lengths)
        q, new_k = qk.split([self.heads, self.kv_heads], dim=2)
        after = before + branches
        k[:, :, before:after], v[:, :, before:after] = new_k.transpose(1, 2), new_v.transpose(1, 2)
        answer = F.scaled_dot_product_attention(
            q.transpose(1, 2),
            k[:, :, :after],
            v[:, :, :after],
            attn_mask=self._visible(ancestry, after),
            scale=self.scale,
            enable_gqa=self.heads != self.kv_heads,
        )
        return answer.transpose(1, 2).reshape(rows * branches, -1)

    def _visible(self, ancestry: Ancestry, after: int) -> Tensor | None:
        """The slots that each branch sees, its own newest among them; None if it sees all."""
        if ancestry.even:
            return None
        own = torch.eye(ancestry.branches, dtype=torch.bool, device=ancestry.seen.device)
        past = ancestry.seen[:, :, : after - ancestry.branches]
        return torch.cat([past, own.expand(len(past), -1, -1)], -1)[:, None]
