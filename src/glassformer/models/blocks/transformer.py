"""The Transformer block. Vaswani et al., 2017."""

from collections.abc import Callable
from functools import partial

from glassformer.config import StackConfig
from glassformer.core.caches import Cache, Memory
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask
from glassformer.core.positions import Position
from glassformer.core.shapes import MemoryVectors, Vectors
from glassformer.models.blocks.base import (
    Block,
    attention_of,
    cross_attention_of,
    feedforward_of,
    residual_of,
)


class TransformerBlock(Block):
    """Self-attention, cross-attention if there is a memory, and a feed-forward network.

    Args:
        memory_dim: Width of the memory that a decoder's block attends to; None in an encoder.
    """

    def __init__(self, config: StackConfig, *, memory_dim: int | None = None) -> None:
        super().__init__()
        self.parallel = config.parallel
        self.attention, self.attention_residual = attention_of(config), residual_of(config)
        self.cross_attention = self.cross_residual = None
        if memory_dim is not None:
            self.cross_attention = cross_attention_of(config, memory_dim)
            self.cross_residual = residual_of(config)
        self.feedforward, self.feedforward_residual = feedforward_of(config), residual_of(config)

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
        self_attention = partial(
            self.attention, mask=mask, position=position, cache=cache, layout=layout
        )
        return self.through(x, self_attention, layout, memory)

    def through(
        self,
        x: Vectors,
        self_attention: Callable[[Vectors], Vectors],
        layout: Layout,
        memory: Memory | None,
    ) -> Vectors:
        """The vectors after this block, with self-attention as given."""
        sublayers = [(self.attention_residual, self_attention)]
        if self.cross_attention is not None and self.cross_residual is not None:
            if memory is None:
                raise ValueError("a decoder's block attends to a memory; pass what `keep` returns")
            cross_attention = partial(self.cross_attention, memory=memory, layout=layout)
            sublayers.append((self.cross_residual, cross_attention))
        sublayers.append((self.feedforward_residual, self.feedforward))
        if self.parallel:
            return x + sum(residual.added(x, sublayer, layout) for residual, sublayer in sublayers)
        for residual, sublayer in sublayers:
            x = residual(x, sublayer, layout)
        return x

    def new_cache(self) -> Cache:
        return self.attention.new_cache()

    def keep(self, memory: MemoryVectors, layout: Layout) -> Memory:
        if self.cross_attention is None:
            return super().keep(memory, layout)
        return self.cross_attention.keep(memory, layout)
