"""The E-Branchformer block: branches merged with a convolution. Kim et al., 2022."""

import torch
from torch import nn

from glassformer.config import StackConfig
from glassformer.core.caches import Cache, Memory
from glassformer.core.dropout import Dropout, StochasticDepth
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask
from glassformer.core.positions import Position
from glassformer.core.shapes import Vectors
from glassformer.models.blocks.base import Block, attention_of, feedforward_of, norm_of, residual_of
from glassformer.models.blocks.convolution import (
    check_call,
    check_settings,
    convolve,
    depthwise,
    gate_of,
)


class EBranchformerBlock(Block):
    """A Branchformer's branches between two half-weighted feed-forward networks; then a norm.

        x = x + ½ first(x)
        x = x + merge(both + convolve(both))        where both = [attention(x), gate(x)]
        norm(x + ½ last(x))

    Each part starts with its own norm (order `pre`, the only one). The convolutions of the gate
    and of the merge have the same width.
    """

    def __init__(self, config: StackConfig, *, memory_dim: int | None = None) -> None:
        super().__init__()
        check_settings(type(self).__name__, config, memory_dim)
        self.width = config.convolution.width
        self.first_feedforward = feedforward_of(config)
        self.first_residual = residual_of(config, weight=0.5)
        self.attention, self.attention_norm = attention_of(config), norm_of(config.norm, config.dim)
        self.gate, self.gate_norm = gate_of(config), norm_of(config.norm, config.dim)
        self.merge_depthwise = depthwise(2 * config.dim, self.width)
        self.merge = nn.Linear(2 * config.dim, config.dim)
        self.dropout = Dropout(config.dropout)
        self.depth_dropout = StochasticDepth(config.depth_dropout)
        self.last_feedforward = feedforward_of(config)
        self.last_residual = residual_of(config, weight=0.5)
        self.norm = norm_of(config.norm, config.dim)

    def forward(
        self,
        x: Vectors,
        *,
        layout: Layout,
        mask: Mask,
        position: Position | None = None,
        cache: Cache | None = None,
        memory: Memory | None = None,
    ) -> Vectors:
        """The vectors after this block, in the same layout."""
        check_call(type(self).__name__, self.width, mask, cache, memory)
        x = self.first_residual(x, self.first_feedforward, layout)
        normed = self.attention_norm(x, layout)
        far = self.attention(normed, mask=mask, position=position, cache=cache, layout=layout)
        near = self.gate(self.gate_norm(x, layout), layout, mask, cache)
        both = torch.cat([self.dropout(far), self.dropout(near)], dim=-1)  # (..., 2 D)
        merged = self.merge(both + convolve(self.merge_depthwise, both, layout, mask, cache))
        x = x + self.depth_dropout(self.dropout(merged), layout)
        x = self.last_residual(x, self.last_feedforward, layout)
        return self.norm(x, layout)
