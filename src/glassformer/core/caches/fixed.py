"""FixedCache: a fixed capacity, allocated once.

Every step has the same shapes and addresses, as torch.compile and CUDA graphs require.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.core.caches.base import (
    KeyCache,
    addresses,
    by_token,
    refuse_gradient,
    refuse_other_batch,
    refuse_other_kind,
    set_aside,
)
from glassformer.core.layout import Layout
from glassformer.core.shapes import Keys, NewKeys, NewValues, Values


class FixedCache(KeyCache):
    """Keys and values for `rows` sequences of up to `capacity` tokens, written in place.

    Slot p of a row holds its token at position p. One extra slot per row takes the padding.
    """

    def __init__(
        self,
        rows: int,
        capacity: int,
        *,
        heads: int,
        key_width: int,
        value_width: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.capacity = capacity
        self.lengths: Int[Tensor, " B"] = torch.zeros(rows, dtype=torch.long, device=device)
        slots = capacity + 1
        self._k = torch.zeros(rows, slots, heads, key_width, device=device, dtype=dtype)
        self._v = torch.zeros(rows, slots, heads, value_width, device=device, dtype=dtype)

    def place(self, layout: Layout) -> Layout:
        if layout.starts is not None:
            return layout
        refuse_other_batch(len(self._k), layout)
        return layout.shifted(self.lengths.clone(), reach=self.capacity)

    def append(self, k: NewKeys, v: NewValues, layout: Layout) -> tuple[Keys, Values, Layout]:
        refuse_other_batch(len(self._k), layout)
        refuse_gradient("a FixedCache", k, v)
        row, position = addresses(layout)
        position = set_aside(position, layout, spare=self.capacity)
        lengths = layout.ends
        self._refuse_overflow(lengths)
        refuse_other_kind(self._k, by_token(k))
        refuse_other_kind(self._v, by_token(v))
        self._k[row, position] = by_token(k)
        self._v[row, position] = by_token(v)
        self.lengths.copy_(lengths)
        keys = Layout(
            rows=layout.rows,
            longest=self.capacity,
            reach=self.capacity,
            tokens=None,
            device=layout.device,
            row_lengths=self.lengths,
        )
        seen = slice(0, self.capacity)
        return self._k[:, seen].transpose(1, 2), self._v[:, seen].transpose(1, 2), keys

    def clear(self) -> None:
        """Empty the cache, keeping its memory."""
        for tensor in (self.lengths, self._k, self._v):
            tensor.zero_()

    def _refuse_overflow(self, lengths: Int[Tensor, " B"]) -> None:
        """Refuse more tokens than fit; a GPU checks it asynchronously, so that no step waits."""
        fits = (lengths <= self.capacity).all()
        if lengths.is_cuda or torch.compiler.is_compiling():
            torch._assert_async(fits, "a FixedCache is full; make one with a larger capacity")
        elif not fits:
            longest = int(lengths.max())
            raise ValueError(
                f"the cache has room for {self.capacity} tokens per row, but a row has {longest}; "
                f"make one with a capacity of at least {longest}"
            )
