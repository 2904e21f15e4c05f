"""Attention: every query takes a weighted average of the values it may see.

    attention(q, k, v) = softmax(q kᵀ / √K + bias) v        over the keys the mask allows

`attend` computes it with the best kernel for the call; `kernels/plain.py` is the one to read.
`MultiHeadAttention` is the module: projections around `attend`, with mask, position, cache and
layout as arguments of the call.
"""

import math
from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.bias import DistanceBias
from glassformer.core.caches import Ancestry, Cache, GrowingCache, KeyCache, Memory
from glassformer.core.dropout import checked_share
from glassformer.core.heads import Heads, check_heads, named_biases
from glassformer.core.kernels import Call, choose
from glassformer.core.kernels.forms import padded_call, run
from glassformer.core.kernels.plain import attention_weights
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, Window, everything
from glassformer.core.norms import RMSNorm
from glassformer.core.positions import Position
from glassformer.core.refusals import check, fitting_layout, full_layout, keys_of, refuse_idle
from glassformer.core.shapes import (
    Answers,
    Keys,
    MemoryVectors,
    Queries,
    Values,
    Vectors,
    merge_heads,
    split_heads,
)

EPSILON = torch.finfo(torch.float32).eps  # of the norms of queries and keys, in any type


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
    dropout: float = 0.0,
    aligned: bool | None = None,
    branches: Ancestry | None = None,
) -> Call:
    """The call that attends from `q` to `k`; without layouts, full rows that start at zero.

    Args:
        aligned: Whether the queries are the last tokens of the keys. Unless told, only where both
            have the same layout.
        branches: Of a BranchingCache, where the queries are branches of their rows.
    """
    queries = queries or full_layout(q, steps=2)
    keys = keys or (queries if q.shape[2:-1] == k.shape[2:-1] else full_layout(k, steps=2))
    return Call(
        mask=mask,
        queries=queries,
        keys=keys,
        scale=1 / math.sqrt(q.shape[-1]),
        bias=bias,
        dropout=dropout,
        aligned=keys is queries if aligned is None else aligned,
        branches=branches,
    )


class MultiHeadAttention(nn.Module):
    """Attention in several subspaces at once. Vaswani et al., 2017.

    Queries come from `x`; keys and values come from `memory`, or from `x` itself when there is none
    (self-attention).

    Args:
        dim: Width of the vectors going in and coming out.
        heads: Number of heads, or a `Heads` for grouped heads and widths of their own.
        bias: Whether the projections add a bias: all, none, or those named, of q, k, v and out.
        project: Whether heads are mixed by an output projection; without it they lie side by side.
        qk_norm: Whether queries and keys are normalised (RMSNorm) before they are compared.
        dropout: Share of the weights dropped in training. The fastest kernels have none.
        window: In self-attention, only positions fewer than this many steps away are seen, whatever
            else the mask allows; None for all of them.
        memory_dim: Width of the memory in cross-attention; `dim` unless told otherwise.
    """

    def __init__(
        self,
        dim: int,
        heads: int | Heads,
        *,
        bias: bool | Collection[str] = False,
        project: bool = True,
        qk_norm: bool = False,
        dropout: float = 0.0,
        window: int | None = None,
        memory_dim: int | None = None,
    ) -> None:
        super().__init__()
        shape = heads if isinstance(heads, Heads) else Heads(heads)
        self.heads, self.groups = shape.count, shape.count if shape.groups is None else shape.groups
        check_heads(dim, shape, self.groups)
        self.key_width = shape.key_width or dim // self.heads
        self.value_width = shape.value_width or self.key_width
        self.dropout = checked_share(dropout)
        self.window = None if window is None else Window(window)
        self.kernel = "auto"
        source, biased = dim if memory_dim is None else memory_dim, named_biases(bias)
        self.to_q = nn.Linear(dim, self.heads * self.key_width, bias="q" in biased)
        self.to_k = nn.Linear(source, self.groups * self.key_width, bias="k" in biased)
        self.to_v = nn.Linear(source, self.groups * self.value_width, bias="v" in biased)
        self.to_out: nn.Linear | None = None
        if project:
            self.to_out = nn.Linear(self.heads * self.value_width, dim, bias="out" in biased)
        self.q_norm = RMSNorm(self.key_width, eps=EPSILON) if qk_norm else None
        self.k_norm = RMSNorm(self.key_width, eps=EPSILON) if qk_norm else None

    def forward(
        self,
        x: Vectors,
        memory: MemoryVectors | Memory | None = None,
        *,
        mask: Mask = everything,
        position: Position | None = None,
        cache: Cache | None = None,
        layout: Layout | None = None,
        memory_layout: Layout | None = None,
    ) -> Float[Tensor, "*tokens out"]:
        """Answers for `x`.

        Args:
            layout: Of `x`; without one, full rows. With a cache they stand after what it holds.
            memory_layout: Of `memory`, when that is a tensor with rows of different lengths.
        """
        layout = fitting_layout("x", x, layout)
        refuse_idle(memory, memory_layout, position, cache, self.window)
        if memory is None:
            q, k, v, call = self._look_at_itself(x, mask, position, keys_of(cache), layout)
        else:
            q, k, v, call = self._look_at_memory(x, memory, mask, layout, memory_layout)
        answer = merge_heads(attend(q, k, v, call, kernel=self.kernel))
        return answer if self.to_out is None else self.to_out(answer)

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
        refuse_idle(memory, memory_layout, position, None, self.window)
        if memory is None:
            return weigh(*self._look_at_itself(x, mask, position, None, layout))
        return weigh(*self._look_at_memory(x, memory, mask, layout, memory_layout))

    def new_cache(self) -> KeyCache:
        """An empty cache for decoding from left to right, one that grows."""
        return GrowingCache()

    def keep(self, memory: MemoryVectors, layout: Layout | None = None) -> Memory:
        """The memory's keys and values, to be looked at many times."""
        layout = fitting_layout("memory", memory, layout)
        return Memory(*self.keys_and_values(memory), layout)

    def _look_at_itself(
        self,
        x: Vectors,
        mask: Mask,
        position: Position | None,
        cache: KeyCache | None,
        layout: Layout,
    ) -> tuple[Queries, Keys, Values, Call]:
        queries = layout if cache is None else cache.place(layout)
        q, (k, v), keys = self.queries(x), self.keys_and_values(x), queries
        if position is not None:
            q, k = position.turn(q, k, queries)
        if cache is not None:
            k, v, keys = cache.append(k, v, queries)  # from here on, S counts the past too
        bias = None if position is None else position.bias(q, queries, keys)
        call = describe(
            q,
            k,
            mask=mask if self.window is None else mask & self.window,
            queries=queries,
            keys=keys,
            bias=bias,
            dropout=self.dropout if self.training else 0.0,
            aligned=True,
        )
        return q, k, v, call

    def _look_at_memory(
        self,
        x: Vectors,
        memory: MemoryVectors | Memory,
        mask: Mask,
        layout: Layout,
        memory_layout: Layout | None,
    ) -> tuple[Queries, Keys, Values, Call]:
        kept = memory if isinstance(memory, Memory) else self.keep(memory, memory_layout)
        q, dropout = self.queries(x), self.dropout if self.training else 0.0
        call = describe(
            q, kept.k, mask=mask, queries=layout, keys=kept.layout, dropout=dropout, aligned=False
        )
        return q, kept.k, kept.v, call

    def queries(self, x: Vectors) -> Queries:
        """What these vectors ask, by head."""
        q = split_heads(self.to_q(x), self.heads)
        return q if self.q_norm is None else self.q_norm(q)

    def keys_and_values(self, x: MemoryVectors) -> tuple[Keys, Values]:
        """What these vectors are found by and what they tell, by head."""
        k, v = split_heads(self.to_k(x), self.groups), split_heads(self.to_v(x), self.groups)
        return k if self.k_norm is None else self.k_norm(k), v
