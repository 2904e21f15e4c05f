"""A decoder whose keys and values lie in pages: sequences of any lengths, each at its own place."""

from collections.abc import Sequence
from functools import partial
from typing import TypeGuard, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.attention import MultiHeadAttention, attend, describe
from glassformer.core.caches import Memory, PagedCache, PagePool
from glassformer.core.caches.paged import to_device
from glassformer.core.kernels.forms import padded
from glassformer.core.layout import Layout
from glassformer.core.masks import causal
from glassformer.core.positions.rotary import Turns, rotated
from glassformer.core.steps.paged_attention import has_kernel
from glassformer.engine.fused_step import fused_scores, turns_at
from glassformer.engine.generation import Branch
from glassformer.errors import GlassformerError
from glassformer.models.blocks.transformer import TransformerBlock
from glassformer.models.incremental.branching import keeps_keys
from glassformer.models.incremental.fused import fused_model
from glassformer.models.incremental.prompt import max_positions
from glassformer.models.stacks import Decoder
from glassformer.models.transcriber import Transcriber
from glassformer.models.transformer import LanguageModel, Transformer, scored


class PagedDecoder:
    """The decoder of a model, with a pool for what it has read, and one for what it attends to.

    Args:
        pages: Of the pool for tokens.
        memory_pages: Of the pool for encoded sources; a language model has none.

    Attributes:
        fused: The model laid out for steps, if it can be.
    """

    def __init__(
        self,
        model: LanguageModel | Transformer | Transcriber,
        *,
        pages: int,
        memory_pages: int,
        page_size: int,
    ) -> None:
        decoder = model.decoder
        tokens = model.tokens if isinstance(model, LanguageModel) else model.target
        if tokens is None or decoder is None or not can_page(decoder):
            raise GlassformerError(
                "the engine needs a decoder of Transformer blocks with softmax attention, whose "
                "heads have one shape in all of them; predict without it"
            )
        self.decoder, self.tokens, self.unembed = decoder, tokens, model.unembed
        weight = tokens.table.weight
        self.device, self.positions = weight.device, max_positions(decoder)
        blocks = [cast(TransformerBlock, block) for block in decoder.blocks]
        pages_like = partial(
            pool_for, page_size=page_size, device=self.device, dtype=kept_dtype(weight)
        )
        self.pool, self.sources = pages_like([one.attention for one in blocks], pages), None
        self.fused = fused_model(model) if isinstance(model, LanguageModel) else None
        if self.fused is not None and self.fused.dtype != self.pool.k.dtype:
            self.fused = None
        if not isinstance(model, LanguageModel):
            self.sources = pages_like([one.cross_attention for one in blocks], memory_pages)

    @torch.no_grad()
    def keep(self, memory: Sequence[Memory]) -> int:
        """Put an encoded source into pages; returns the number of its sequence."""
        assert self.sources is not None
        number = self.sources.open()
        rows = [Memory(padded(m.k, m.layout), padded(m.v, m.layout), m.layout) for m in memory]
        layout, caches = self.sources.extend([number], [rows[0].k.shape[-2]])
        for cache, one in zip(caches, rows, strict=True):
            cache.append(one.k, one.v, layout)
        return number

    @torch.no_grad()
    def read(
        self, branches: Sequence[Branch], counts: Sequence[int], *, exact: bool = False
    ) -> Float[Tensor, "B V"]:
        """Read so many tokens of each; returns the scores of the token after the last of them.

        Args:
            exact: Whether each is read by itself.
        """
        if exact and len(branches) > 1:
            return torch.cat(
                [self.read([one], [n]) for one, n in zip(branches, counts, strict=True)]
            )
        ids: list[int] = []
        for one, count in zip(branches, counts, strict=True):
            ids += one.tokens[one.read : one.read + count]
            one.read += count
        layout, caches = self.pool.extend([one.sequence for one in branches], counts, packed=True)
        tokens, last = to_device(ids, self.device), layout.bounds[1:] - 1
        if self.fused is not None:
            turns = turns_at(self.fused, layout.positions)
            by_heads = partial(self._attend_heads, caches, layout, turns)
            return fused_scores(self.fused, tokens, layout, by_heads, last)
        memory = None
        if self.sources is not None:
            memory = self.sources.memories([one.source for one in branches])
        x, _ = self.tokens(tokens, layout)  # (N, D)
        x = self.decoder(x, layout=layout, memory=memory, caches=caches)
        return scored(x[last], self.tokens, self.unembed)

    def _attend_heads(
        self,
        caches: Sequence[PagedCache],
        layout: Layout,
        turns: Turns | None,
        number: int,
        heads: Float[Tensor, "N HGG K"],
    ) -> Float[Tensor, "N H K"]:
        """Self-attention of prompts, of a model laid out for steps."""
        layer = cast(MultiHeadAttention, self.decoder.blocks[number].attention)
        cache, kept = caches[number], has_kernel(self.device)
        qk, v = heads.split([layer.heads + layer.kv_heads, layer.kv_heads], dim=1)
        if kept:
            from glassformer.core.steps.keeping_kernel import turn_and_keep

            qk = turn_and_keep(heads, cache, layout, turns)
        else:
            qk = rotated(qk, turns)
        q, k = qk.split([layer.heads, layer.kv_heads], dim=1)
        k, v, keys = (cache.with_past if kept else cache.append)(k, v, layout)
        call = describe(
            q, k, mask=causal, queries=layout, keys=keys, scoring=layer.scoring, aligned=True
        )
        return attend(q, k, v, call)


def kept_dtype(weight: Tensor) -> torch.dtype:
    """The type of keys and values: that of autocast, or of the weights."""
    kind = weight.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


def can_page(decoder: nn.Module) -> TypeGuard[Decoder]:
    """Whether the keys and values of all blocks can lie in pages of one pool."""
    if not keeps_keys(decoder):
        return False
    layers = [cast(MultiHeadAttention, block.attention) for block in decoder.blocks]
    return len({(one.kv_heads, one.key_width, one.value_width) for one in layers}) == 1


def pool_for(
    layers: Sequence[nn.Module | None],
    pages: int,
    *,
    page_size: int,
    device: torch.device,
    dtype: torch.dtype,
) -> PagePool:
    """Pages for the keys and values of attention layers."""
    layer = cast(MultiHeadAttention, layers[0])
    return PagePool(
        pages=pages,
        page_size=page_size,
        layers=len(layers),
        heads=layer.kv_heads,
        key_width=layer.key_width,
        value_width=layer.value_width,
        device=device,
        dtype=dtype,
    )
