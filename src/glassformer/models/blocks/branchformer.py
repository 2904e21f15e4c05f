"""The Branchformer block: attention and convolution in parallel. Peng et al., 2022."""

import torch
from torch import nn

from glassformer.config import StackConfig
from glassformer.core.caches import Cache, Memory
from glassformer.core.dropout import Dropout, StochasticDepth
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask
from glassformer.core.positions import Position
from glassformer.core.shapes import Vectors
from glassformer.models.blocks.base import Block, attention_of, norm_of
from glassformer.models.blocks.convolution import check_call, check_settings, gate_of


class BranchformerBlock(Block):
    """Attention for global context, a convolutional gate for local context, and a merge of both.

        norm(x + merge([attention(x), gate(x)]))

    Each branch starts with its own norm (order `pre`, the only one). There is no separate
    feed-forward network: the gate takes its place, with its width.
    """

    def __init__(self, config: StackConfig, *, memory_dim: int | None = None) -> None:
        super().__init__()
        check_settings(type(self).__name__, config, memory_dim)
        self.width = config.convolution.width
        self.attention, self.attention_norm = attention_of(config), norm_of(config.norm, config.dim)
        self.gate, self.gate_norm = gate_of(config), norm_of(config.norm, config.dim)
        self.merge = nn.Linear(2 * config.dim, config.dim)
        self.dropout = Dropout(config.dropout)
        self.depth_dropout = StochasticDepth(config.depth_dropout)
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
        normed = self.attention_norm(x, layout)
        far = self.attention(normed, mask=mask, position=position, cache=cache, layout=layout)
        near = self.gate(self.gate_norm(x, layout), layout, mask, cache)
        both = torch.cat([self.dropout(far), self.dropout(near)], dim=-1)  # (..., 2 D)
        x = x + self.depth_dropout(self.dropout(self.merge(both)), layout)
        return self.norm(x, layout)
