"""Cache: what a layer keeps of the tokens so far, passed in by the caller.

KeyCache     keeps all keys and values: softmax attention
StateCache   keeps a state of fixed size (`state`): linear attention, recurrence, convolutions
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.core.shapes import ByHead, Keys, NewKeys, NewValues, Values


class Cache(ABC):
    """What a layer keeps between calls, never inside a module; rows may differ in length."""

    @abstractmethod
    def place(self, layout: Layout) -> Layout:
        """The layout of new tokens, positioned after those held; a placed layout is unchanged."""


class KeyCache(Cache):
    """Keys and values of the tokens so far."""

    @abstractmethod
    def append(self, k: NewKeys, v: NewValues, layout: Layout) -> tuple[Keys, Values, Layout]:
        """Add new keys and values with their placed layout; return all of them and their layout."""


@dataclass(frozen=True, eq=False, slots=True)
class Memory:
    """Keys and values of a finished sequence, computed once, for cross-attention."""

    k: Keys
    v: Values
    layout: Layout


def by_token(x: ByHead) -> Float[Tensor, "N G K"]:
    """One row per token: (B, G, T, K) -> (B T, G, K); packed tokens are returned as they are."""
    return x.transpose(1, 2).flatten(0, 1) if x.ndim == 4 else x


def addresses(layout: Layout) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
    """The row and position of every token, padding included, in the order of `by_token`."""
    if layout.row_of is not None:
        return layout.row_of, layout.positions
    rows = torch.arange(layout.rows, device=layout.device)
    shape = (layout.rows, layout.longest)
    return rows[:, None].expand(shape).flatten(), layout.positions.expand(shape).flatten()


def set_aside(place: Int[Tensor, " N"], layout: Layout, spare: int) -> Int[Tensor, " N"]:
    """The same places, except that padding goes to a spare one that is never read."""
    if layout.is_packed or layout.is_full:
        return place
    return place.where(layout.real.flatten(), spare)


def placed_after(layout: Layout, lengths: Int[Tensor, " B"] | None, longest: int) -> Layout:
    """The layout of new tokens after rows of these lengths; None if all have `longest`."""
    if lengths is None:
        starts = torch.full((1,), longest, device=layout.device)
        return layout.shifted(starts, longest + layout.longest)
    reach = longest + layout.longest
    if layout.device.type == "cpu" and not torch.compiler.is_compiling():
        reach = int((lengths + layout.lengths).max())  # exact, where reading it needs no sync
    return layout.shifted(lengths, reach)


def refuse_other_batch(rows: int, layout: Layout) -> None:
    """Refuse a batch with another number of rows than the cache was made for."""
    if layout.rows != rows:
        raise ValueError(
            f"the cache holds {rows} rows, but the batch has {layout.rows}; "
            f"use a cache made for {layout.rows} rows"
        )


def refuse_other_kind(room: Float[Tensor, "..."], new: Float[Tensor, "..."]) -> None:
    """Refuse keys or values of another dtype or shape than the cache was made for."""
    if new.shape[1:] != room.shape[-2:] or new.dtype != room.dtype:
        raise ValueError(
            f"the cache has room for heads {tuple(room.shape[-2:])} of {room.dtype}, but got "
            f"{tuple(new.shape[1:])} of {new.dtype}; make it with the layer's sizes and dtype"
        )


def refuse_gradient(name: str, k: Tensor, v: Tensor) -> None:
    """Refuse to write in place where that would silently cut off the gradient."""
    if torch.is_grad_enabled() and (k.requires_grad or v.requires_grad):
        raise ValueError(
            f"{name} writes in place and keeps no gradient; "
            f"call it under torch.no_grad(), or use a GrowingCache"
        )
