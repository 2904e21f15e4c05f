"""Stacks: identical blocks on top of each other, as an encoder or a decoder.

    Encoder   a whole sequence at once, every position seeing every other
    Decoder   a sequence from left to right, with or without a memory, with caches to continue from

Both take padded and packed batches, with the same result for either.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from glassformer.config import StackConfig
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import Cache, Memory
from glassformer.core.dropout import Dropout
from glassformer.core.layout import Layout, pack, pad, zero_padding
from glassformer.core.masks import Mask, causal, everything
from glassformer.core.positions import SCALINGS, Position, make_position
from glassformer.core.shapes import MemoryVectors, Vectors
from glassformer.models.blocks import BLOCKS, Block
from glassformer.models.blocks.base import norm_of
from glassformer.models.blocks.transformer import TransformerBlock


class Stack(nn.Module):
    """Blocks on top of each other.

    Attributes:
        recomputes: Activation checkpointing: activations inside a block are not stored but computed
            again in the backward pass, for less memory and more time. Chen et al., 2016.
    """

    recomputes = False

    def through(self, block: nn.Module, x: Vectors, **options: Any) -> Vectors:
        """The output of a block."""
        if self.recomputes and self.training and torch.is_grad_enabled():
            return checkpoint(partial(block, **options), x, use_reentrant=False)
        return block(x, **options)


def recompute_activations(model: nn.Module) -> None:
    """Turn on activation checkpointing in every stack of a model."""
    for module in model.modules():
        if isinstance(module, Stack):
            module.recomputes = True


class Encoder(Stack):
    """Reads a whole sequence."""

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.dim = config.dim
        self.position = position_of(config, looks_ahead=True)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            BLOCKS[config.block](config.layer(number)) for number in range(config.depth)
        )
        self.norm = None if config.order == "post" else norm_of(config.norm, config.dim)

    def forward(
        self,
        x: Vectors,
        *,
        layout: Layout,
        mask: Mask = everything,
        caches: Sequence[Cache] | None = None,
    ) -> Vectors:
        """The vectors after the last layer, in the same layout."""
        return self.outputs(x, layout=layout, mask=mask, caches=caches)[-1]

    def outputs(
        self,
        x: Vectors,
        *,
        layout: Layout,
        mask: Mask = everything,
        after: Collection[int] = (),
        caches: Sequence[Cache] | None = None,
    ) -> list[Vectors]:
        """The vectors after so many blocks, each time as if these were all; at last, after all.

        Args:
            caches: One per block, of a stream whose next chunk `x` is.
        """
        x, inside = packed_inside(x, layout)
        if caches is not None:
            layout = inside = caches[0].place(layout)
        x = self.dropout(self.position.embed(x, inside))
        found = []
        for number, block in enumerate(self.blocks, start=1):
            cache = None if caches is None else caches[number - 1]
            x = self.through(
                block, x, layout=inside, mask=mask, position=self.position, cache=cache
            )
            if number == len(self.blocks) or number in after:
                y = x if self.norm is None else self.norm(x, inside)
                found.append(y if inside is layout else pad(y, inside))
        return found


class Decoder(Stack):
    """Reads or continues a sequence from left to right.

    Args:
        memory_dim: Width of the memory to attend to; None for a language model, which has none.
    """

    def __init__(self, config: StackConfig, *, memory_dim: int | None = None) -> None:
        super().__init__()
        self.dim = config.dim
        self.position, self.dropout = (
            position_of(config, looks_ahead=False),
            Dropout(config.dropout),
        )
        self.blocks = nn.ModuleList(
            BLOCKS[config.block](config.layer(number), memory_dim=memory_dim)
            for number in range(config.depth)
        )
        self.norm = None if config.order == "post" else norm_of(config.norm, config.dim)

    def forward(
        self,
        x: Vectors,
        *,
        layout: Layout,
        memory: Sequence[Memory] | None = None,
        mask: Mask = causal,
        caches: Sequence[Cache] | None = None,
    ) -> Vectors:
        """Vectors after the last block.

        Args:
            memory: What `keep` returned.
            caches: One per block; the tokens of `x` come after those they hold.
        """
        if caches is None:
            x, inside = packed_inside(x, layout)
        else:
            x, inside = zero_padding(x, layout), self._first(caches).place(layout)
        x = self.dropout(self.position.embed(x, inside))
        for number, block in enumerate(self.blocks):
            x = self.through(
                block,
                x,
                layout=inside,
                mask=mask,
                position=self.position,
                cache=None if caches is None else caches[number],
                memory=None if memory is None else memory[number],
            )
        x = x if self.norm is None else self.norm(x, inside)
        return pad(x, inside) if inside.is_packed and not layout.is_packed else x

    def step(
        self,
        x: Vectors,
        attend: Callable[[int, MultiHeadAttention, Vectors], Vectors],
        *,
        at: Layout,
        layout: Layout,
        memory: Sequence[Memory] | None = None,
    ) -> Vectors:
        """The newest tokens after the last block, of Transformer blocks with softmax attention.

        Args:
            attend: Self-attention by the layer of the block with this number.
            at: Where the tokens stand in their sequences.
            layout: Of the tokens by themselves.
        """
        x = self.position.embed(x, at)
        for number, block in enumerate(self.blocks):
            own = cast(TransformerBlock, block)
            attention = partial(attend, number, cast(MultiHeadAttention, own.attention))
            x = own.through(x, attention, layout, None if memory is None else memory[number])
        return x if self.norm is None else self.norm(x, layout)

    def _first(self, caches: Sequence[Cache]) -> Cache:
        """The first cache, which knows where new tokens go, if there is one for each block."""
        if len({id(cache) for cache in caches}) != len(self.blocks):
            raise ValueError(
                f"{len(self.blocks)} blocks need one cache each, got "
                f"{len({id(cache) for cache in caches})}; call new_caches()"
            )
        return caches[0]

    def keep(self, memory: MemoryVectors, layout: Layout) -> list[Memory]:
        """What each block needs of the memory, computed once."""
        return [cast(Block, block).keep(memory, layout) for block in self.blocks]

    def new_caches(self) -> list[Cache]:
        """Empty caches for decoding from left to right, one per block."""
        return [cast(Block, block).new_cache() for block in self.blocks]


def position_of(config: StackConfig, *, looks_ahead: bool) -> Position:
    """The stack's position scheme, one for all its blocks."""
    p, options = config.position, config.position.options
    if p.kind == "t5":
        options["both_ways"] = looks_ahead
    if p.scaling is not None:
        options["scaling"] = SCALINGS[p.scaling.kind](**p.scaling.options)
    return make_position(
        p.kind,
        config.dim,
        config.attention.heads,
        config.max_length,
        width=config.attention.key_width,
        **options,
    )


def packed_inside(x: Vectors, layout: Layout) -> tuple[Vectors, Layout]:
    """Packed on CUDA, so that no block computes padding; elsewhere, padding set to zero."""
    packs = x.is_cuda and not layout.is_packed and not layout.is_full and layout.tokens is not None
    if not packs:
        return zero_padding(x, layout), layout
    inside = layout.as_packed()
    return pack(x, inside), inside
