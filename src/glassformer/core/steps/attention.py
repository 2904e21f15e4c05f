"""Self-attention of the newest token of every branch, to the cache and itself.

Queries and keys are rotated, keys and values are written to the next slots of the cache, and every
branch attends to the slots of its ancestors.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import Ancestry
from glassformer.core.kernels.fused import backends
from glassformer.core.positions.rotary import Rotary


@dataclass(frozen=True, eq=False, slots=True)
class Rotation:
    """How each position turns the channels of a head: x cos + x[partner] sin.

    Attributes:
        rotated: How many channels, the first ones, it turns.
        rows: Of `cos` and `sin`, those of the newest tokens; kernels on CUDA find them themselves.
    """

    cos: Float[Tensor, "positions K"]
    sin: Float[Tensor, "positions K"]
    partner: Int[Tensor, " K"]
    rotated: int
    rows: tuple[Tensor, Tensor] | None = None

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

    def at(self, positions: Int[Tensor, " B"]) -> "Rotation":
        """The same with the rows of these positions at hand, one for each row of a batch."""
        rows = self.cos[positions][:, None, None], self.sin[positions][:, None, None]
        return replace(self, rows=rows)

    def until(self, length: int) -> "Rotation":
        """The same with the first positions at hand, in order, for every row of a batch."""
        return replace(self, rows=(self.cos[:length], self.sin[:length]))

    def turned(self, x: Float[Tensor, "B heads W K"]) -> Float[Tensor, "B heads W K"]:
        """Queries or keys at the positions at hand."""
        assert self.rows is not None
        cos, sin = self.rows
        return torch.addcmul(x * cos.to(x.dtype), self.partners(x), sin.to(x.dtype))

    def partners(self, x: Float[Tensor, "*by K"]) -> Float[Tensor, "*by K"]:
        """The channel that each is turned with."""
        whole = self.rotated == x.shape[-1]
        return x.roll(self.rotated // 2, -1) if whole else x.index_select(-1, self.partner)


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
        after, heads, groups = before + branches, self.heads, self.kv_heads
        x = qkv.view(rows, branches, -1, self.width).transpose(1, 2)  # (B, H + 2 G, W, K)
        qk, newest = x.split((heads + groups, groups), 1)
        q, key = (qk if rotation is None else rotation.turned(qk)).split((heads, groups), 1)
        k[:, :, before:after], v[:, :, before:after] = key, newest
        seen = self._visible(ancestry, after)
        answer = self._attend(q, k[:, :, :after], v[:, :, :after], attn_mask=seen)
        return answer.transpose(1, 2).reshape(rows * branches, -1)

    def read(
        self,
        qkv: Float[Tensor, "tokens projected"],
        k: Float[Tensor, "B G S K"],
        v: Float[Tensor, "B G S K"],
        rotation: Rotation | None,
    ) -> Float[Tensor, "tokens D"]:
        """The answers for a prompt in padded rows, of which the first slots of the cache are made.

        Padding follows all real tokens, where none of them looks.
        """
        q, key, value = self._by_head(qkv, len(k), rotation)
        length = q.shape[2]
        k[:, :, :length], v[:, :, :length] = key, value
        with backends(q):
            answer = self._attend(q, key, value, is_causal=True)
        return answer.transpose(1, 2).reshape(len(qkv), -1)

    def _by_head(
        self, qkv: Float[Tensor, "tokens projected"], rows: int, rotation: Rotation | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of padded rows, turned."""
        heads, both = self.heads, self.heads + self.kv_heads
        x = qkv.view(rows, -1, both + self.kv_heads, self.width).transpose(1, 2)
        qk = x[:, :both] if rotation is None else rotation.turned(x[:, :both])
        return qk[:, :heads], qk[:, heads:], x[:, both:]

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, **seen: Any) -> Float[Tensor, "B H T K"]:
        gqa = self.heads != self.kv_heads
        return F.scaled_dot_product_attention(q, k, v, **seen, scale=self.scale, enable_gqa=gqa)

    def _visible(self, ancestry: Ancestry, after: int) -> Tensor | None:
        """The slots that each branch sees, its own newest among them; None if it sees all."""
        if ancestry.even:
            return None
        own = torch.eye(ancestry.branches, dtype=torch.bool, device=ancestry.seen.device)
        past = ancestry.seen[:, :, : after - ancestry.branches]
        return torch.cat([past, own.expand(len(past), -1, -1)], -1)[:, None]
