"""Attention: every query takes a weighted average of the values it may see.

    attention(q, k, v) = softmax(q kᵀ / √K + bias) v        over the keys the mask allows

`attend` computes it with the best kernel for the call; `kernels/plain.py` is the one to read.
`MultiHeadAttention` is the module: projections around `attend`, with mask, position, cache and
layout as arguments of the call.
"""

import math
from collections.abc import Collection

from jaxtyping import Float
from torch import Tensor

from glassformer.core.bias import DistanceBias
from glassformer.core.caches import Ancestry, Cache, GrowingCache, KeyCache, Memory
from glassformer.core.dropout import checked_share
from glassformer.core.heads import Heads
from glassformer.core.kernels import Call, choose
from glassformer.core.kernels.forms import padded_call, run
from glassformer.core.kernels.plain import attention_weights
from glassformer.core.layer import AttentionLayer, by_one_product
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, Window, everything
from glassformer.core.norms import RMSNorm
from glassformer.core.positions import Position
from glassformer.core.refusals import (
    check,
    fitting_layout,
    full_layout,
    keys_of,
    refuse_idle,
    refuse_window,
)
from glassformer.core.scoring import USUAL, Scoring
from glassformer.core.shapes import (
    Answers,
    ByHead,
    Keys,
    MemoryVectors,
    Queries,
    Values,
    Vectors,
    split_heads,
)


def attend(q: Queries, k: Keys, v: Values, call: Call, *, kernel: str = "auto") -> Answers:
    """The answers, in the form of the queries, by the best kernel or the one forced by name."""
    check(q, k, v, call)
    return run(choose(q, k, v, call, forced=kernel), q, k, v, call)


def weigh(
    q: Queries, k: Keys, v: Values, call: Call, *, kernel: str = "auto"
) -> Float[Tensor, "B H T S"]:
    """The weights `attend` would use, in padded form. Only `plain` can give them."""
    check(q, k, v, call)
    choose(q, k, v, call, forced=kernel, weights=True)
    q, k, _, call = padded_call(q, k, v, call)
    return attention_weights(q, k, call)


def describe(
    q: Queries,
    k: Keys,
    *,
    mask: Mask = everything,
    queries: Layout | None = None,
    keys: Layout | None = None,
    bias: DistanceBias | None = None,
    scoring: Scoring = USUAL,
    dropout: float = 0.0,
    aligned: bool | None = None,
    branches: Ancestry | None = None,
) -> Call:
    """The call that attends from `q` to `k`; without layouts, full rows that start at zero.

    Args:
        aligned: Whether the queries are the last tokens of the keys; by default, if both have the
            same layout.
        branches: Of a BranchingCache, where the queries are branches of their rows.
    """
    queries = queries or full_layout(q, steps=2)
    keys = keys or (queries if q.shape[2:-1] == k.shape[2:-1] else full_layout(k, steps=2))
    return Call(
        mask=mask,
        queries=queries,
        keys=keys,
        scale=1 / math.sqrt(q.shape[-1]) if scoring.scale is None else scoring.scale,
        softcap=scoring.softcap,
        bias=bias,
        dropout=dropout,
        aligned=keys is queries if aligned is None else aligned,
        branches=branches,
    )


class MultiHeadAttention(AttentionLayer):
    """Attention in several subspaces at once. Vaswani et al., 2017.

    Args:
        dim, heads, bias, project, memory_dim: As of every `AttentionLayer`.
        scoring: How queries and keys are compared; by their product / √K.
        dropout: Share of the weights dropped in training. The fastest kernels have none.
        window: In self-attention, only positions fewer than this many steps away are seen, whatever
            else the mask allows; None for all of them.
    """

    def __init__(
        self,
        dim: int,
        heads: int | Heads,
        *,
        bias: bool | Collection[str] = False,
        project: bool = True,
        scoring: Scoring = USUAL,
        dropout: float = 0.0,
        window: int | None = None,
        memory_dim: int | None = None,
    ) -> None:
        super().__init__(dim, heads, bias=bias, project=project, memory_dim=memory_dim)
        self.dropout = checked_share(dropout)
        self.window = None if window is None else Window(window)
        self.kernel, self.scoring = "auto", scoring
        self.q_norm = self.k_norm = None
        if scoring.qk_norm:
            self.q_norm = RMSNorm(self.key_width, eps=scoring.epsilon)
            self.k_norm = RMSNorm(self.key_width, eps=scoring.epsilon)

    def look_around(
        self,
        x: Vectors,
        mask: Mask,
        position: Position | None,
        cache: Cache | None,
        layout: Layout,
    ) -> Answers:
        return self.attend(*self._around(x, mask, position, keys_of(cache), layout))

    def look_across(self, x: Vectors, memory: Memory, mask: Mask, layout: Layout) -> Answers:
        return self.attend(*self._across(x, memory, mask, layout))

    def attend(
        self, q: Queries, k: Keys, v: Values, call: Call, cache: Cache | None = None
    ) -> Answers:
        return attend(q, k, v, call, kernel=self.kernel)

    def weigh(
        self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"], call: Call
    ) -> Float[Tensor, "B H T S"]:
        return attention_weights(q, k, call)

    def weights(
        self,
        x: Vectors,
        memory: MemoryVectors | Memory | None = None,
        *,
        mask: Mask = everything,
        position: Position | None = None,
        layout: Layout | None = None,
        memory_layout: Layout | None = None,
    ) -> Float[Tensor, "B H T S"]:
        """What each query of `x` would take from each key, whatever kernel runs otherwise."""
        layout = fitting_layout("x", x, layout)
        refuse_idle(memory, memory_layout, position, None)
        if memory is None:
            return weigh(*self._around(x, mask, position, None, layout))
        return weigh(*self._across(x, self.memory_of(memory, memory_layout), mask, layout))

    def new_cache(self) -> KeyCache:
        """An empty cache for decoding from left to right, one that grows."""
        return GrowingCache()

    def queries(self, x: Vectors) -> Queries:
        return normed(super().queries(x), self.q_norm)

    def keys_and_values(self, x: MemoryVectors) -> tuple[Keys, Values]:
        k, v = super().keys_and_values(x)
        return normed(k, self.k_norm), v

    def projected(self, x: Vectors) -> tuple[Queries, Keys, Values]:
        """Queries, keys and values of the same vectors."""
        q, k, v = by_one_product(x, self.to_q, self.to_k, self.to_v)
        q, k = split_heads(q, self.heads), split_heads(k, self.kv_heads)
        return normed(q, self.q_norm), normed(k, self.k_norm), split_heads(v, self.kv_heads)

    def windowed(self, mask: Mask) -> Mask:
        """What self-attention may see under a mask."""
        return mask if self.window is None else mask & self.window

    def _around(
        self,
        x: Vectors,
        mask: Mask,
        position: Position | None,
        cache: KeyCache | None,
        layout: Layout,
    ) -> tuple[Queries, Keys, Values, Call]:
        queries = layout if cache is None else cache.place(layout)
        (q, k, v), keys = self.projected(x), queries
        if position is not None:
            q, k = position.turn(q, k, queries)
        if cache is not None:
            k, v, keys = cache.append(k, v, queries)  # from here on, S counts the past too
        bias = None if position is None else position.bias(q, queries, keys)
        call = describe(
            q,
            k,
            mask=self.windowed(mask),
            queries=queries,
            keys=keys,
            bias=bias,
            scoring=self.scoring,
            dropout=self.dropout if self.training else 0.0,
            aligned=True,
        )
        return q, k, v, call

    def _across(
        self, x: Vectors, memory: Memory, mask: Mask, layout: Layout
    ) -> tuple[Queries, Keys, Values, Call]:
        refuse_window(self.window)
        q, dropout = self.queries(x), self.dropout if self.training else 0.0
        call = describe(
            q,
            memory.k,
            mask=mask,
            queries=layout,
            keys=memory.layout,
            scoring=self.scoring,
            dropout=dropout,
            aligned=False,
        )
        return q, memory.k, memory.v, call


def normed(x: ByHead, norm: RMSNorm | None) -> ByHead:
    """Queries or keys after the norm, if there is one."""
    return x if norm is None else norm(x)
