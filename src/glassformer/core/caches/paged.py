"""PagePool: many sequences in one memory, without fragmentation.

Memory is divided into pages of a few tokens. A sequence owns a list of pages (its row of the block
table), any free page will do, and sequences with a common prefix share its pages. A shared page is
copied before it is written to. Kwon et al., 2023.

    pool = PagePool(pages=64, page_size=16, layers=2, heads=4, key_width=32, value_width=32)
    a = pool.open()
    layout, caches = pool.extend([a], [5])       # room for 5 tokens, and one cache per layer
    ...                                          # run the model with them
    b = pool.fork(a)                             # continues separately, sharing the past
    pool.close(a)
"""

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.caches.base import (
    KeyCache,
    Memory,
    addresses,
    by_token,
    refuse_gradient,
    refuse_other_batch,
    refuse_other_kind,
    set_aside,
)
from glassformer.core.layout import Layout
from glassformer.core.shapes import Keys, NewKeys, NewValues, Values


class PagePool:
    """The pages of all layers, who owns them, and which are free."""

    def __init__(
        self,
        *,
        pages: int,
        page_size: int,
        layers: int,
        heads: int,
        key_width: int,
        value_width: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.page_size, self.device = page_size, torch.device(device)
        # One extra page: padding is written there and nothing is read from it.
        shape = (layers, pages + 1, page_size, heads)
        self.k = torch.zeros(*shape, key_width, device=device, dtype=dtype)
        self.v = torch.zeros(*shape, value_width, device=device, dtype=dtype)
        self._free = list(range(pages - 1, -1, -1))
        self._owners = [0] * pages
        self._pages: dict[int, list[int]] = {}
        self._lengths: dict[int, int] = {}
        self._opened = 0

    @property
    def pages(self) -> int:
        """Number of pages in all."""
        return len(self._owners)

    @property
    def free_pages(self) -> int:
        """Number of free pages."""
        return len(self._free)

    def length(self, sequence: int) -> int:
        """Number of tokens in a sequence."""
        self._require_open(sequence)
        return self._lengths[sequence]

    def open(self) -> int:
        """Start an empty sequence; returns its number."""
        self._opened += 1
        self._pages[self._opened], self._lengths[self._opened] = [], 0
        return self._opened

    def fork(self, sequence: int, length: int | None = None) -> int:
        """Start a sequence that shares the first `length` tokens of another (by default, all)."""
        held = self.length(sequence)
        length = held if length is None else length
        if not 0 <= length <= held:
            raise ValueError(
                f"cannot share {length} tokens of sequence {sequence}, which has {held}; "
                f"choose from 0 to {held}"
            )
        fork = self.open()
        self._pages[fork] = self._pages[sequence][: self.pages_for(length)]
        self._lengths[fork] = length
        for page in self._pages[fork]:
            self._owners[page] += 1
        return fork

    def close(self, sequence: int) -> None:
        """End a sequence; pages that no other sequence shares become free."""
        self._require_open(sequence)
        for page in self._pages.pop(sequence):
            self._release(page)
        del self._lengths[sequence]

    def extend(
        self, sequences: Sequence[int], tokens: Sequence[int]
    ) -> tuple[Layout, list["PagedCache"]]:
        """Allocate room for new tokens; returns their layout and a cache for each layer.

        If there are not enough pages, nothing changes.
        """
        for sequence in sequences:
            self._require_open(sequence)
        if min(tokens, default=0) < 0:
            raise ValueError(f"lengths must be 0 or more, got {min(tokens)}")
        if not sequences or len(sequences) != len(tokens):
            raise ValueError(
                f"{len(sequences)} sequences and {len(tokens)} counts; give each sequence its count"
            )
        if len(set(sequences)) != len(sequences):
            raise ValueError(
                f"a sequence can appear in a batch only once, got {list(sequences)}; "
                f"fork it to continue it in two ways"
            )
        starts = [self._lengths[sequence] for sequence in sequences]
        self._refuse_if_full(sequences, tokens)
        for sequence, count in zip(sequences, tokens, strict=True):
            self._grow(sequence, count)
        ends = [self._lengths[sequence] for sequence in sequences]
        layout = laid_out(tokens, self.device)
        layout = layout.shifted(torch.tensor(starts, device=self.device), reach=max(ends))
        keys = laid_out(ends, self.device)
        table = self._table(sequences)
        return layout, [PagedCache(self, n, table, keys) for n in range(len(self.k))]

    def memories(self, sequences: Sequence[int]) -> list[Memory]:
        """What these sequences hold, as the memory of each layer."""
        _, caches = self.extend(sequences, [0] * len(sequences))
        return [cache.memory() for cache in caches]

    def _grow(self, sequence: int, count: int) -> None:
        """Take enough pages for `count` more tokens, sharing none that will be written to."""
        pages, length = self._pages[sequence], self._lengths[sequence]
        if self._must_copy(sequence, count):
            page = self._take()
            self.k[:, page] = self.k[:, pages[-1]]
            self.v[:, page] = self.v[:, pages[-1]]
            self._release(pages[-1])
            pages[-1] = page
        while len(pages) < self.pages_for(length + count):
            pages.append(self._take())
        self._lengths[sequence] = length + count

    def _must_copy(self, sequence: int, count: int) -> bool:
        """Whether new tokens go into a page that another sequence reads too."""
        half_full = self._lengths[sequence] % self.page_size > 0
        return count > 0 and half_full and self._owners[self._pages[sequence][-1]] > 1

    def _refuse_if_full(self, sequences: Sequence[int], tokens: Sequence[int]) -> None:
        needed, writers = 0, Counter[int]()
        for sequence, count in zip(sequences, tokens, strict=True):
            pages = self._pages[sequence]
            needed += self.pages_for(self._lengths[sequence] + count) - len(pages)
            writers.update(pages[-1:] if self._must_copy(sequence, count) else [])
        # Of the writers of a shared page, the last owner left need not copy it.
        needed += sum(min(n, self._owners[page] - 1) for page, n in writers.items())
        if needed > self.free_pages:
            raise ValueError(
                f"{needed} pages are needed, but only {self.free_pages} of {len(self._owners)} "
                f"are free; close a sequence, or make a larger pool"
            )

    def _table(self, sequences: Sequence[int]) -> Int[Tensor, "B pages"]:
        """The block table: the pages of each row, padded with the spare page."""
        lists = [self._pages[sequence] for sequence in sequences]
        longest, spare = max(map(len, lists)), len(self._owners)
        return torch.tensor(
            [pages + [spare] * (longest - len(pages)) for pages in lists],
            dtype=torch.long,
            device=self.device,
        )

    def _take(self) -> int:
        page = self._free.pop()
        self._owners[page] = 1
        self.k[:, page], self.v[:, page] = 0, 0  # clears what its last owner left, NaN above all
        return page

    def _release(self, page: int) -> None:
        self._owners[page] -= 1
        if not self._owners[page]:
            self._free.append(page)

    def pages_for(self, tokens: int) -> int:
        """How many pages so many tokens need."""
        return -(-tokens // self.page_size)

    def _require_open(self, sequence: int) -> None:
        if sequence not in self._pages:
            raise ValueError(f"sequence {sequence} is not open; choose from {sorted(self._pages)}")


def laid_out(lengths: Sequence[int], device: torch.device) -> Layout:
    """Rows of these lengths, which may all be the same."""
    if min(lengths) == max(lengths):
        return Layout.full(len(lengths), lengths[0], device)
    return Layout.padded(lengths, device=device)


class PagedCache(KeyCache):
    """One layer of a pool, as the cache of one batch for one step."""

    def __init__(
        self, pool: PagePool, layer: int, table: Int[Tensor, "B pages"], keys: Layout
    ) -> None:
        self._pool, self._layer, self._table, self._keys = pool, layer, table, keys

    def place(self, layout: Layout) -> Layout:
        if layout.starts is None:
            raise ValueError("a paged cache needs the layout that PagePool.extend returned with it")
        return layout

    def append(self, k: NewKeys, v: NewValues, layout: Layout) -> tuple[Keys, Values, Layout]:
        refuse_other_batch(len(self._table), layout)
        refuse_gradient("a paged cache", k, v)
        page, slot = self._slots(layout)
        k_pages, v_pages = self._pool.k[self._layer], self._pool.v[self._layer]
        refuse_other_kind(k_pages, by_token(k))
        refuse_other_kind(v_pages, by_token(v))
        k_pages[page, slot] = by_token(k)
        v_pages[page, slot] = by_token(v)
        if not layout.is_full:  # the spare page is read as padding, so it stays clean
            k_pages[-1], v_pages[-1] = 0, 0
        return self._gathered(k_pages), self._gathered(v_pages), self._keys

    def memory(self) -> Memory:
        """All keys and values of the batch."""
        k_pages, v_pages = self._pool.k[self._layer], self._pool.v[self._layer]
        return Memory(self._gathered(k_pages), self._gathered(v_pages), self._keys)

    def _slots(self, layout: Layout) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """The page and the slot in it for every token, worked out by the first layer."""
        if PagedCache not in layout.memo:
            layout.memo[PagedCache] = self._find_slots(layout)
        return layout.memo[PagedCache]

    def _find_slots(self, layout: Layout) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """The same; padding goes to the spare page."""
        row, position = addresses(layout)
        number = (position // self._pool.page_size).clamp(max=self._table.shape[1] - 1)
        spare = len(self._pool.k[self._layer]) - 1
        page = set_aside(self._table[row, number], layout, spare)
        return page, position % self._pool.page_size

    def _gathered(self, pages: Float[Tensor, "P size G K"]) -> Float[Tensor, "B G S K"]:
        """The pages of each row, end to end."""
        return pages[self._table].flatten(1, 2)[:, : self._keys.longest].transpose(1, 2)
