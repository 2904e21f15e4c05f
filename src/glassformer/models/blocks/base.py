"""Block: one layer of a stack, and the parts its settings describe."""

from abc import ABC, abstractmethod
from functools import partial

from torch import nn

from glassformer.config import NormConfig, StackConfig
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import Cache, Memory
from glassformer.core.feedforward import FEEDFORWARDS
from glassformer.core.heads import Heads
from glassformer.core.kinds import KINDS
from glassformer.core.layer import AttentionLayer
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask
from glassformer.core.norms import NORMS
from glassformer.core.positions import Position
from glassformer.core.residual import Residual
from glassformer.core.scoring import EPSILON, Scoring
from glassformer.core.shapes import MemoryVectors, Vectors


class Block(nn.Module, ABC):
    """Vectors in, vectors out, in the same layout; what varies by call is passed by keyword."""

    @abstractmethod
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

    def new_cache(self) -> Cache:
        """An empty cache for decoding from left to right."""
        raise ValueError(f"a {type(self).__name__} cannot decode; use a TransformerBlock")

    def keep(self, memory: MemoryVectors, layout: Layout) -> Memory:
        """What this block's cross-attention needs of a memory, computed once."""
        raise ValueError(f"a {type(self).__name__} has no cross-attention; use a decoder's block")


def attention_of(config: StackConfig) -> AttentionLayer:
    """The self-attention of a layer, by its settings."""
    a, options = config.attention, {}
    if a.kind == "softmax":
        window = a.windows[0] or None
        options = {"scoring": scoring_of(config), "dropout": a.dropout, "window": window}
    if a.kind == "linformer":
        options = {"summary": a.summary, "max_length": config.max_length}
    return KINDS[a.kind](config.dim, heads_of(config), bias=a.bias, **options)


def cross_attention_of(config: StackConfig, memory_dim: int) -> MultiHeadAttention:
    """The cross-attention: softmax, whatever the kind of self-attention."""
    a, heads = config.attention, heads_of(config)
    return MultiHeadAttention(
        config.dim,
        heads,
        bias=a.bias,
        scoring=scoring_of(config),
        dropout=a.dropout,
        memory_dim=memory_dim,
    )


def scoring_of(config: StackConfig) -> Scoring:
    """How queries and keys are compared, by a stack's settings."""
    a, epsilon = config.attention, config.norm.epsilon or EPSILON
    return Scoring(scale=a.scale, softcap=a.softcap, qk_norm=a.qk_norm, epsilon=epsilon)


def heads_of(config: StackConfig) -> Heads:
    """The heads, by a stack's settings."""
    a = config.attention
    return Heads(a.heads, a.kv_heads, a.key_width, a.value_width)


def feedforward_of(config: StackConfig) -> nn.Module:
    """The feed-forward network, by a stack's settings."""
    f = config.feedforward
    return FEEDFORWARDS[f.kind](config.dim, config.hidden, bias=f.bias, dropout=f.dropout)


def norm_of(config: NormConfig, dim: int) -> nn.Module:
    """The norm, by its settings."""
    return NORMS[config.kind](dim, **config.options)


def residual_of(config: StackConfig, *, weight: float = 1.0) -> Residual:
    """The residual connection around a sublayer, by a stack's settings."""
    return Residual(
        config.dim,
        order=config.order,
        norm=partial(norm_of, config.norm),
        dropout=config.dropout,
        depth_dropout=config.depth_dropout,
        weight=weight,
    )
