"""A fused encoder: the same vectors as an `Encoder`'s, in a few functions of PyTorch a layer.

A short text takes a small encoder less time to compute than to walk through its modules. So for
predictions on a CPU, encoders of the usual kind are laid out once as fused steps are
(`incremental.layer`): norms are folded into the layers after them, and queries, keys and values are
one product. Weights that change later have no effect on it. Whatever else is asked of an encoder,
such as gradients, the encoder itself answers.

Three things are laid out in another way than the encoder has them:

- Channels that rotary positions rotate together lie side by side, as complex numbers: a rotation is
  one product.
- If blocks have LayerNorms, vectors are centred: so is what every layer adds to them. A LayerNorm
  of a centred vector is an RMSNorm, which takes a fifth of the time. Jiang et al., 2023.
- Keys are filled up to whole vector registers: for what is left over, PyTorch computes one
  exponential at a time, and for a text of 13 tokens that is most of the time of attention.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float
from torch import Tensor, nn

from glassformer.core.caches import Cache
from glassformer.core.int8 import Int8Linear
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, everything
from glassformer.core.norms import LayerNorm
from glassformer.core.positions.rotary import Rotary
from glassformer.core.shapes import Vectors
from glassformer.core.steps.attention import StepAttention
from glassformer.core.steps.linear import StepLinear
from glassformer.models.blocks.transformer import TransformerBlock
from glassformer.models.ensemble import Ensemble, members_of
from glassformer.models.incremental.fused import can_fuse, rounded
from glassformer.models.incremental.layer import Layer
from glassformer.models.stacks import Encoder
from glassformer.models.transformer import Classifier
from glassformer.models.word_level import WordEncoder

LANES = 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 8  # numbers in a register
MANY = 64  # tokens of a batch, from which on it pays to fill up keys

Keys = Float[Tensor, "#B 1 1 S"]  # 0 for those that are seen, -inf for others
Rotation = Complex[Tensor, "positions pairs"]  # what pairs of channels are multiplied with


class FusedBlock(nn.Module):
    """A block, laid out; a module, so that whoever watches the layers of a model sees it.

    Args:
        rotary: How queries and keys are rotated.
        centred: Whether vectors have a mean of 0, and keep it.
    """

    def __init__(self, block: TransformerBlock, rotary: Rotary | None, centred: bool) -> None:
        super().__init__()
        layer = Layer.of(block, torch.float32)
        self.attention, self.parallel = layer.attention, layer.parallel
        self.projection, self.out = layer.projection, layer.out
        self.widen, self.narrow = layer.widen, layer.narrow
        if rotary is not None:
            self.projection = with_pairs(self.projection, self.attention, rotary)
        if centred:
            self.projection, self.widen = after_rms(self.projection), after_rms(self.widen)
            self.out, self.narrow = centring(self.out), centring(self.narrow)

    def forward(
        self,
        x: Float[Tensor, "tokens D"],
        rows: int,
        rotation: Rotation | None,
        seen: Keys | None,
    ) -> Float[Tensor, "tokens D"]:
        """The vectors of padded rows after this block."""
        qkv = self.projection.reference(x)
        if rotation is not None:
            torch.view_as_complex(qkv.view(rows, len(rotation), -1, 2)).mul_(rotation)
        attended = self.out.reference(self._attend(qkv, rows, seen), x)
        widened = self.widen.reference(x if self.parallel else attended)
        return self.narrow.reference(widened, attended)

    def _attend(
        self, qkv: Float[Tensor, "tokens projected"], rows: int, seen: Keys | None
    ) -> Float[Tensor, "tokens D"]:
        """What each token takes from those that are seen; there may be more keys than tokens."""
        attention, tokens = self.attention, len(qkv)
        heads, kv_heads = attention.heads, attention.kv_heads
        by_head = qkv.view(rows, tokens // rows, -1, attention.width).transpose(1, 2)
        q, kv = by_head[:, :heads], by_head[:, heads:]
        if seen is not None and seen.shape[-1] > tokens // rows:
            kv = F.pad(kv, (0, 0, 0, seen.shape[-1] - tokens // rows))
        k, v, gqa = kv[:, :kv_heads], kv[:, kv_heads:], heads != kv_heads
        answer = F.scaled_dot_product_attention(
            q, k, v, seen, scale=attention.scale, enable_gqa=gqa
        )
        return answer.transpose(1, 2).reshape(tokens, -1)


class FusedEncoder(nn.Module):
    """An encoder, laid out, beside the encoder itself."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.dim = encoder, encoder.dim
        self.ends = encoder.position, cast(nn.Module, encoder.norm)  # sooner found in a tuple
        blocks = [cast(TransformerBlock, block) for block in encoder.blocks]
        norms = [r.before for b in blocks for r in (b.attention_residual, b.feedforward_residual)]
        layer_norms = all(isinstance(norm, LayerNorm) for norm in norms)
        self.centred = layer_norms and len(blocks) > 1  # for one, centring costs what it saves
        rotary = encoder.position if isinstance(encoder.position, Rotary) else None
        self.blocks = nn.ModuleList(FusedBlock(block, rotary, self.centred) for block in blocks)
        self.table: Rotation | None = None  # grows with the longest row
        self.rotations: dict[int, Rotation] = {}  # of it, by length
        self.filled_up: dict[int, Keys] = {}  # full rows, by length

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
        rotation, seen, y = self._rotation(layout.longest), self._seen(layout), x.flatten(0, 1)
        if self.centred:
            y = y - y.mean(-1, keepdim=True)
        for block in self.blocks:
            y = block(y, layout.rows, rotation, seen)
        return norm(y).view(x.shape)

    def _rotation(self, length: int) -> Rotation | None:
        """How queries and keys are rotated."""
        position, _ = self.ends
        if not isinstance(position, Rotary):
            return None
        if length not in self.rotations:
            if self.table is None or len(self.table) < length:
                attention = cast(FusedBlock, self.blocks[0]).attention
                self.table = rotation_table(position, attention, rounded(length))
            self.rotations[length] = self.table[:length]
        return self.rotations[length]

    def _seen(self, layout: Layout) -> Keys | None:
        """The keys that are seen; None if there are as many as tokens, and all are."""
        length, left_over = layout.longest, layout.longest % LANES
        fills = left_over > LANES // 3 and layout.rows * length >= MANY
        more = LANES - left_over if fills else 0
        if not layout.is_full:
            real = layout.real[:, None, None]  # (B, 1, 1, T)
            seen = torch.zeros(real.shape).masked_fill_(~real, -torch.inf)
            return F.pad(seen, (0, more), value=-torch.inf) if more else seen
        if more and length not in self.filled_up:
            all_seen = torch.zeros(1, 1, 1, length)  # of whatever number of rows
            self.filled_up[length] = F.pad(all_seen, (0, more), value=-torch.inf)
        return self.filled_up[length] if more else None


def rotation_table(rotary: Rotary, attention: StepAttention, positions: int) -> Rotation:
    """The rotation of queries and keys at each position; values stay as they are."""
    cos, sin = rotary.cos_sin(torch.arange(positions))  # (positions, rotated / 2)
    head = F.pad(torch.complex(cos, sin), (0, (rotary.width - rotary.rotated) // 2), value=1)
    turned = head.repeat(1, attention.heads + attention.kv_heads)
    return F.pad(turned, (0, attention.kv_heads * rotary.width // 2), value=1)


def with_pairs(projection: StepLinear, attention: StepAttention, rotary: Rotary) -> StepLinear:
    """The projection with the channels that are rotated together side by side."""
    channels = torch.arange(len(projection.weight)).view(-1, rotary.width)
    rotated = channels[: attention.heads + attention.kv_heads, : rotary.rotated]
    rotated[:] = rotated.unflatten(1, (2, -1)).mT.flatten(1)
    order = channels.flatten()
    bias = None if projection.bias is None else projection.bias[order]
    return projection.with_weight(projection.weight.mT[:, order].mT, bias)


def after_rms(linear: StepLinear) -> StepLinear:
    """A layer after a LayerNorm of centred vectors, with an RMSNorm instead."""
    weight = linear.weight * linear.weight.shape[1] ** 0.5
    return replace(linear.with_weight(weight, linear.bias), norm="rms", sums=None)


def centring(linear: StepLinear) -> StepLinear:
    """A layer whose vectors have a mean of 0."""
    bias = None if linear.bias is None else linear.bias - linear.bias.mean()
    return linear.with_weight(linear.weight - linear.weight.mean(0, keepdim=True), bias)


def with_fused_encoder(model: Classifier) -> Classifier:
    """The same model with a fused encoder; the model itself if its encoder is of another kind."""
    on_cpu = all(
        one.device.type == "cpu" and one.dtype == torch.float32 for one in model.parameters()
    )
    fused = fused_encoder(model.encoder) if on_cpu else None
    if fused is None:
        return model
    twin = copy.copy(model)
    twin._modules = {**model._modules, "encoder": fused}
    return twin


def fused_encoder(encoder: nn.Module) -> nn.Module | None:
    """A fused encoder, or an ensemble of them; None for an encoder of another kind."""
    if isinstance(encoder, Ensemble):
        members = [fused_encoder(member) for member in members_of(encoder)]
        return None if None in members else Ensemble(cast(list[nn.Module], members))
    if isinstance(encoder, WordEncoder):
        inside = fused_encoder(encoder.inside)
        return None if inside is None else WordEncoder(inside)
    int8 = any(isinstance(one, Int8Linear) for one in encoder.modules())
    if int8 or not can_fuse(encoder):
        return None
    position = cast(Encoder, encoder).position
    if isinstance(position, Rotary) and position.width % 2:  # channels are taken in pairs
        return None
    return FusedEncoder(cast(Encoder, encoder)).eval()
