"""AttentionLayer: what all kinds of attention share, whichever formula they look by.

Projections to queries, keys and values by head, a projection of the answers, one way to be called,
and refusals of what would do nothing. A kind says how it looks around and across.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.caches import Cache, Memory
from glassformer.core.heads import Heads, check_heads, named_biases
from glassformer.core.kernels import Call
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, everything
from glassformer.core.positions import Position
from glassformer.core.refusals import fitting_layout, refuse_idle
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

NARROW = 256  # width of vectors up to which a product takes little longer than its call


class AttentionLayer(nn.Module, ABC):
    """Queries come from `x`; keys and values from `memory`, or from `x` itself without one.

    Args:
        dim: Width of the vectors going in and coming out.
        heads: Number of heads, or a `Heads` for grouped heads and widths of their own.
        bias: Whether the projections add a bias: all, none, or those named, of q, k, v and out.
        project: Whether heads are mixed by an output projection; without it they lie side by side.
        memory_dim: Width of the memory in cross-attention; `dim` by default.
    """

    def __init__(
        self,
        dim: int,
        heads: int | Heads,
        *,
        bias: bool | Collection[str] = False,
        project: bool = True,
        memory_dim: int | None = None,
    ) -> None:
        super().__init__()
        shape = heads if isinstance(heads, Heads) else Heads(heads)
        self.heads, self.kv_heads = (
            shape.count,
            shape.count if shape.kv_heads is None else shape.kv_heads,
        )
        check_heads(dim, shape, self.kv_heads)
        self.key_width = shape.key_width or dim // self.heads
        self.value_width = shape.value_width or self.key_width
        source, biased = dim if memory_dim is None else memory_dim, named_biases(bias)
        self.to_q = nn.Linear(dim, self.heads * self.key_width, bias="q" in biased)
        self.to_k = nn.Linear(source, self.kv_heads * self.key_width, bias="k" in biased)
        self.to_v = nn.Linear(source, self.kv_heads * self.value_width, bias="v" in biased)
        self.to_out: nn.Linear | None = None
        if project:
            self.to_out = nn.Linear(self.heads * self.value_width, dim, bias="out" in biased)

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
        refuse_idle(memory, memory_layout, position, cache)
        if memory is None:
            answer = self.look_around(x, mask, position, cache, layout)
        else:
            answer = self.look_across(x, self.memory_of(memory, memory_layout), mask, layout)
        return self.project_out(answer)

    @abstractmethod
    def look_around(
        self,
        x: Vectors,
        mask: Mask,
        position: Position | None,
        cache: Cache | None,
        layout: Layout,
    ) -> Answers:
        """Self-attention: the answers by head, in the form of `x`."""

    @abstractmethod
    def look_across(self, x: Vectors, memory: Memory, mask: Mask, layout: Layout) -> Answers:
        """Cross-attention: the answers by head, in the form of `x`."""

    @abstractmethod
    def attend(
        self, q: Queries, k: Keys, v: Values, call: Call, cache: Cache | None = None
    ) -> Answers:
        """The formula itself: the answers by head, in the form of the queries.

        Args:
            cache: Of a kind that keeps a state instead of keys: where to continue from.
        """

    @abstractmethod
    def weigh(
        self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"], call: Call
    ) -> Float[Tensor, "B H T S"]:
        """The weights of the values in the answers of `attend`, for padded rows."""

    @abstractmethod
    def new_cache(self) -> Cache:
        """What it needs to go on from left to right, empty."""

    def keep(self, memory: MemoryVectors, layout: Layout | None = None) -> Memory:
        """What it needs of a memory, to be looked at many times: its keys and values."""
        layout = fitting_layout("memory", memory, layout)
        return Memory(*self.keys_and_values(memory), layout)

    def memory_of(self, memory: MemoryVectors | Memory, layout: Layout | None) -> Memory:
        """A memory that may be kept already."""
        return memory if isinstance(memory, Memory) else self.keep(memory, layout)

    def queries(self, x: Vectors) -> Queries:
        """The queries of these vectors, by head."""
        return split_heads(self.to_q(x), self.heads)

    def keys_and_values(self, x: MemoryVectors) -> tuple[Keys, Values]:
        """The keys and values of these vectors, by head."""
        k, v = by_one_product(x, self.to_k, self.to_v)
        return split_heads(k, self.kv_heads), split_heads(v, self.kv_heads)

    def project_out(self, answer: Answers) -> Float[Tensor, "*tokens out"]:
        """The answers of all heads as vectors."""
        merged = merge_heads(answer)
        return merged if self.to_out is None else self.to_out(merged)


def by_one_product(x: Vectors, *linears: nn.Linear) -> Sequence[Tensor]:
    """What linear layers make of the same vectors, by one matrix product where that is faster.

    That is in compiled models, and in training narrow ones on a CPU.
    """
    narrow = x.device.type == "cpu" and x.shape[-1] <= NARROW
    faster = torch.compiler.is_compiling() or (narrow and x.requires_grad)
    biases: list[Tensor] = [linear.bias for linear in linears if linear.bias is not None]
    if not faster or len(biases) not in (0, len(linears)):
        return [linear(x) for linear in linears]
    weights: list[Tensor] = [linear.weight for linear in linears]
    y = F.linear(x, torch.cat(weights), torch.cat(biases) if biases else None)
    return y.split([linear.out_features for linear in linears], dim=-1)
