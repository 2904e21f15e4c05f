"""A block of the usual kind, laid out for speed: one token per branch is a few kernels."""

from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import Ancestry, BranchingCache
from glassformer.core.feedforward import FeedForward, GatedFeedForward
from glassformer.core.steps.attention import Rotation, StepAttention
from glassformer.core.steps.linear import StepLinear
from glassformer.models.blocks.transformer import TransformerBlock


@dataclass(frozen=True, eq=False, slots=True)
class Layer:
    """A block for one token per branch."""

    projection: StepLinear
    attention: StepAttention
    out: StepLinear
    widen: StepLinear
    narrow: StepLinear
    parallel: bool

    @staticmethod
    def of(block: TransformerBlock, dtype: torch.dtype) -> "Layer":
        """The weights of a block, laid out."""
        attention = cast(MultiHeadAttention, block.attention)
        feedforward = cast(FeedForward | GatedFeedForward, block.feedforward)
        before = block.attention_residual.before, block.feedforward_residual.before
        projections = [attention.to_q, attention.to_k, attention.to_v]
        widening = [feedforward.widen]
        if isinstance(feedforward, GatedFeedForward):
            widening.insert(0, feedforward.gate)
        activation = feedforward.activation
        return Layer(
            StepLinear.of(projections, dtype, norm=before[0]),
            StepAttention.of(attention),
            StepLinear.of([cast(nn.Linear, attention.to_out)], dtype),
            StepLinear.of(widening, dtype, norm=before[1], activation=activation),
            StepLinear.of([feedforward.narrow], dtype),
            block.parallel,
        )

    def __call__(
        self,
        x: Float[Tensor, "M D"],
        cache: BranchingCache,
        ancestry: Ancestry,
        rotation: Rotation | None,
    ) -> Float[Tensor, "M D"]:
        answer = self.attention(self.projection(x), *cache.kept(), ancestry, rotation)
        attended = self.out(answer, x)
        return self.narrow(self.widen(x if self.parallel else attended), attended)

    def read(
        self, x: Float[Tensor, "tokens D"], cache: BranchingCache, rotation: Rotation | None
    ) -> Float[Tensor, "tokens D"]:
        """The same for a prompt, of which an empty cache is made; no kernels are built for it."""
        answer = self.attention.read(self.projection.reference(x), *cache.kept(), rotation)
        attended = self.out.reference(answer, x)
        widened = self.widen.reference(x if self.parallel else attended)
        return self.narrow.reference(widened, attended)
