"""Recordings: one call of an attention layer, from which weights are computed when they are read.

Recorded     queries and keys: memory linear in the length, whatever weights are read later
Held         the weights themselves: of few queries, or where gradients pass through them
Unreadable   a call whose weights cannot be told from what the layer keeps
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.kernels import Call
from glassformer.core.kernels.forms import padded_call
from glassformer.core.layer import AttentionLayer
from glassformer.core.layout import Layout
from glassformer.core.shapes import Keys, Queries

Choice = Sequence[int] | slice | None  # None for all of them
Shape = tuple[int, int, int, int]  # B, H, T, S


class Recording(ABC):
    """The weights of one call."""

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """(B, H, T, S) of all weights."""

    @abstractmethod
    def rows(self, heads: Choice, queries: Choice) -> Float[Tensor, "B h t S"]:
        """The weights of some heads and queries."""


class Recorded(Recording):
    """Queries and keys of a call, in padded rows."""

    def __init__(self, layer: AttentionLayer, q: Queries, k: Keys, call: Call) -> None:
        q, k, _, call = padded_call(q.detach(), k.detach(), k.detach(), call)
        if call.aligned and call.keys is not call.queries:  # of a cache, which may change later
            k, call = snapshot(k, call)
        self.layer, self.q, self.k, self.call = layer, q, k, call

    @property
    def shape(self) -> Shape:
        return *self.q.shape[:3], self.k.shape[2]

    @torch.no_grad()
    def rows(self, heads: Choice, queries: Choice) -> Float[Tensor, "B h t S"]:
        of_heads = chosen("heads", heads, self.q.shape[1])
        some = chosen("queries", queries, self.q.shape[2])
        device, shared = self.q.device, self.q.shape[1] // self.k.shape[1]
        numbers = torch.tensor(of_heads, dtype=torch.long, device=device)
        q, k = self.q[:, numbers], self.k[:, numbers // shared]
        found = [
            self.layer.weigh(q[:, :, start:stop], k, part_of(self.call, numbers, start, stop))
            for start, stop in runs_of(some)
        ]
        return torch.cat(found, 2) if found else q.new_zeros(*q.shape[:2], 0, k.shape[2])


@dataclass(frozen=True, eq=False, slots=True)
class Held(Recording):
    """Weights that exist, in one piece or one for every step."""

    steps: list[Float[Tensor, "B H _ S"]]

    @property
    def shape(self) -> Shape:
        rows, heads, _, keys = self.steps[0].shape
        return rows, heads, sum(step.shape[2] for step in self.steps), keys

    def rows(self, heads: Choice, queries: Choice) -> Float[Tensor, "B h t S"]:
        # A single piece is returned as it is, so that one can ask for gradients by it.
        weights = self.steps[0] if len(self.steps) == 1 else torch.cat(self.steps, 2)
        if heads is not None:
            weights = weights[:, chosen("heads", heads, weights.shape[1])]
        if queries is not None:
            weights = weights[:, :, chosen("queries", queries, weights.shape[2])]
        return weights


class Unreadable(Recording):
    """Linear attention that continues from a state: of the keys before, only sums are left."""

    why = (
        "linear attention keeps sums of its keys, so a step's weights are not known; "
        "run the copy over the whole sequence, without caches"
    )

    @property
    def shape(self) -> Shape:
        raise ValueError(self.why)

    def rows(self, heads: Choice, queries: Choice) -> Float[Tensor, "B h t S"]:
        raise ValueError(self.why)


def snapshot(k: Float[Tensor, "B G S K"], call: Call) -> tuple[Float[Tensor, "B G kept K"], Call]:
    """What a cache holds now, without the slots that no row has filled."""
    keys = call.keys
    if keys.row_lengths is not None:
        lengths = keys.row_lengths.clone()
        filled = min(keys.longest, int(lengths.max())) if len(lengths) else 0
        k, keys = k[:, :, :filled], replace(keys, longest=filled, row_lengths=lengths)
    return k.clone(), replace(call, keys=keys)


def part_of(call: Call, heads: Tensor, start: int, stop: int) -> Call:
    """The call of a stretch of its queries, and of some heads."""
    bias = call.bias
    if bias is not None:
        by_query = bias.by_query
        table = bias.table[:, heads, start:stop] if by_query else bias.table[heads]
        bias = replace(bias, table=table)
    # The queries are no longer the last tokens of the keys.
    return replace(call, queries=stretch(call.queries, start, stop), bias=bias, aligned=False)


def stretch(layout: Layout, start: int, stop: int) -> Layout:
    """The layout of the tokens `start` to `stop` of every padded row, at their positions."""
    lengths, first = layout.row_lengths, torch.full((1,), start, device=layout.device)
    return replace(
        layout,
        longest=stop - start,
        tokens=None,
        row_lengths=None if lengths is None else (lengths - start).clamp(0, stop - start),
        starts=first if layout.starts is None else layout.starts + start,
    )


def runs_of(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Stretches of consecutive numbers.

    >>> list(runs_of([2, 3, 4, 7, 1]))
    [(2, 5), (7, 8), (1, 2)]
    """
    start = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield numbers[start], numbers[place - 1] + 1
            start = place


def chosen(what: str, choice: Choice, count: int) -> list[int]:
    """The numbers that a choice stands for."""
    if choice is None or isinstance(choice, slice):
        return list(range(count)[choice or slice(None)])
    for number in choice:
        if not -count <= number < count:
            raise ValueError(f"there are {count} {what}, and no number {number}; count from 0")
    return [number % count for number in choice]
