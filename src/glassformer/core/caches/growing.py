"""GrowingCache: the simple one. It grows with every call, and gradients pass through."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.caches.base import (
    KeyCache,
    addresses,
    by_token,
    placed_after,
    refuse_other_batch,
    set_aside,
)
from glassformer.core.layout import Layout
from glassformer.core.shapes import Keys, NewKeys, NewValues, Values


class GrowingCache(KeyCache):
    """Starts empty, for a batch of any size; from the first call on, it belongs to that batch.

    Slot p of a row holds the token at position p; slots beyond a row's length are never read.
    """

    def __init__(self) -> None:
        self._k: Float[Tensor, "B S G K"] | None = None
        self._v: Float[Tensor, "B S G W"] | None = None
        self._lengths: Int[Tensor, " B"] | None = None  # None while all rows have one length
        self._longest = 0

    def place(self, layout: Layout) -> Layout:
        if self._k is None or layout.starts is not None:
            return layout
        refuse_other_batch(len(self._k), layout)
        return placed_after(layout, self._lengths, self._longest)

    def append(self, k: NewKeys, v: NewValues, layout: Layout) -> tuple[Keys, Values, Layout]:
        if self._k is not None:
            refuse_other_batch(len(self._k), layout)
        self._k = self._joined(self._k, k, layout)
        self._v = self._joined(self._v, v, layout)
        even = self._lengths is None and layout.is_full
        self._lengths = None if even else layout.ends
        self._longest = layout.reach
        return self._k.transpose(1, 2), self._v.transpose(1, 2), self._layout(layout)

    def _joined(self, old: Tensor | None, new: NewKeys, layout: Layout) -> Float[Tensor, "B S G K"]:
        """The old tokens and the new ones at their positions."""
        even = self._lengths is None and layout.is_full
        if even and old is None:
            return new.transpose(1, 2)
        if even and old is not None:
            return torch.cat([old, new.transpose(1, 2)], dim=1)
        tokens = by_token(new)
        if old is None:
            old = new.new_zeros(layout.rows, 0, *tokens.shape[1:])
        room = F.pad(old, (0, 0, 0, 0, 0, layout.reach + 1 - old.shape[1]))
        row, position = addresses(layout)
        position = set_aside(position, layout, spare=layout.reach)
        return room.index_put((row, position), tokens)[:, : layout.reach]

    def _layout(self, new: Layout) -> Layout:
        if new.starts is None and not new.is_packed:
            return new
        return Layout(
            rows=new.rows,
            longest=self._longest,
            reach=self._longest,
            tokens=None,
            device=new.device,
            row_lengths=self._lengths,
        )
