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

Pages can also be reserved in advance, and keys and values of a sequence be read and written at
once (`load`, `store`), for a decoder that keeps them elsewhere while it works on them.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.caches.base import Memory
from glassformer.core.caches.paged_cache import PagedCache
from glassformer.core.layout import Layout


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
        self.k = torch.empty(*shape, key_width, device=device, dtype=dtype)
        self.v = torch.empty(*shape, value_width, device=device, dtype=dtype)
        self.k[:, -1], self.v[:, -1] = 0, 0  # others are cleared when they are taken
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

    def reserve(self, sequence: int, tokens: int) -> None:
        """Take the pages for so many tokens in all, which it does not hold yet.

        They are not cleared: nothing may be read beyond the tokens that it holds.
        """
        self._require_open(sequence)
        pages = self._pages[sequence]
        needed = self.pages_for(tokens) - len(pages)
        if needed > self.free_pages:
            raise self._full(needed)
        pages += self._take(needed)

    def trim(self, sequence: int) -> None:
        """Release the pages that it has reserved and does not use."""
        self._require_open(sequence)
        pages, used = self._pages[sequence], self.pages_for(self._lengths[sequence])
        for page in pages[used:]:
            self._release(page)
        del pages[used:]

    def pages_of(self, sequence: int) -> list[int]:
        """Its pages in order, those reserved included."""
        self._require_open(sequence)
        return list(self._pages[sequence])

    def load(
        self, sequence: int
    ) -> tuple[Float[Tensor, "layers T G K"], Float[Tensor, "layers T G W"]]:
        """The keys and values of a sequence, in all layers."""
        length = self.length(sequence)
        pages = self._pages[sequence][: self.pages_for(length)]
        return (
            self.k[:, pages].flatten(1, 2)[:, :length],
            self.v[:, pages].flatten(1, 2)[:, :length],
        )

    def store(
        self,
        sequence: int,
        k: Float[Tensor, "layers T G K"],
        v: Float[Tensor, "layers T G W"],
    ) -> None:
        """Add tokens to a sequence that has the pages for them."""
        size, start = self.page_size, self.length(sequence)
        end = self._lengths[sequence] = start + k.shape[1]
        for number in range(start // size, self.pages_for(end)):
            page, before = self._pages[sequence][number], number * size
            first, last = max(start, before), min(end, before + size)
            held, new = slice(first - before, last - before), slice(first - start, last - start)
            self.k[:, page, held], self.v[:, page, held] = k[:, new], v[:, new]

    def rewrite(
        self,
        sequence: int,
        k: Float[Tensor, "layers T G K"],
        v: Float[Tensor, "layers T G W"],
    ) -> None:
        """Replace all tokens of a sequence, which has the pages for them and shares none."""
        self._require_open(sequence)
        self._lengths[sequence] = 0
        self.store(sequence, k, v)

    def advance(self, sequence: int, tokens: int) -> None:
        """Count tokens that were written into its reserved pages."""
        self._require_open(sequence)
        self._lengths[sequence] += tokens

    def extend(
        self, sequences: Sequence[int], tokens: Sequence[int], *, packed: bool = False
    ) -> tuple[Layout, list[PagedCache]]:
        """Allocate room for new tokens; returns their layout and a cache for each layer.

        If there are not enough pages, nothing changes.

        Args:
            packed: Whether the new tokens, and all keys, lie end to end.
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
        layout = keys = laid_out(tokens, self.device, packed)
        if any(starts) or not packed:
            layout = layout.shifted(to_device(starts, self.device), reach=max(ends))
            keys = laid_out(ends, self.device, packed)
        table = self._table(sequences)
        return layout, [PagedCache(k, v, table, keys) for k, v in zip(self.k, self.v, strict=True)]

    def memories(self, sequences: Sequence[int]) -> list[Memory]:
        """What these sequences hold, as the memory of each layer."""
        _, caches = self.extend(sequences, [0] * len(sequences))
        return [cache.memory() for cache in caches]

    def _grow(self, sequence: int, count: int) -> None:
        """Take enough pages for `count` more tokens, sharing none that will be written to."""
        pages, length = self._pages[sequence], self._lengths[sequence]
        if self._must_copy(sequence, count):
            at, (page,) = length // self.page_size, self._take(1)
            self.k[:, page] = self.k[:, pages[at]]
            self.v[:, page] = self.v[:, pages[at]]
            self._release(pages[at])
            pages[at] = page
        if claimed := self._take(self.pages_for(length + count) - len(pages)):
            new = to_device(claimed, self.device)
            for held in (self.k, self.v):
                held.index_fill_(1, new, 0)  # clears what the last owner left, NaN above all
            pages += claimed
        self._lengths[sequence] = length + count

    def _must_copy(self, sequence: int, count: int) -> bool:
        """Whether new tokens go into a page that another sequence reads too."""
        length, pages = self._lengths[sequence], self._pages[sequence]
        half_full = length % self.page_size > 0
        return count > 0 and half_full and self._owners[pages[length // self.page_size]] > 1

    def _refuse_if_full(self, sequences: Sequence[int], tokens: Sequence[int]) -> None:
        needed, writers = 0, Counter[int]()
        for sequence, count in zip(sequences, tokens, strict=True):
            pages, length = self._pages[sequence], self._lengths[sequence]
            needed += max(0, self.pages_for(length + count) - len(pages))
            if self._must_copy(sequence, count):
                writers[pages[length // self.page_size]] += 1
        # Of the writers of a shared page, the last owner left need not copy it.
        needed += sum(min(n, self._owners[page] - 1) for page, n in writers.items())
        if needed > self.free_pages:
            raise self._full(needed)

    def _full(self, needed: int) -> ValueError:
        return ValueError(
            f"{needed} pages are needed, but only {self.free_pages} of {len(self._owners)} "
            f"are free; close a sequence, or make a larger pool"
        )

    def _table(self, sequences: Sequence[int]) -> Int[Tensor, "B pages"]:
        """The block table: the pages of each row, padded with the spare page."""
        lists = [self._pages[sequence] for sequence in sequences]
        longest, spare = max(map(len, lists)), len(self._owners)
        rows = [pages + [spare] * (longest - len(pages)) for pages in lists]
        return to_device(rows, self.device)

    def _take(self, count: int) -> list[int]:
        """Free pages, which now have an owner."""
        claimed = [self._free.pop() for _ in range(count)]
        for page in claimed:
            self._owners[page] = 1
        return claimed

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


def to_device(values: Sequence[Any], device: torch.device) -> Int[Tensor, "*shape"]:
    """Whole numbers on a device, without waiting for what it has to do before."""
    numbers = torch.tensor(values, dtype=torch.long)
    if device.type != "cuda":
        return numbers.to(device)
    return numbers.pin_memory().to(device, non_blocking=True)


def laid_out(lengths: Sequence[int], device: torch.device, packed: bool) -> Layout:
    """Rows of these lengths, which may all be the same."""
    if packed:
        return Layout.packed(lengths, device=device)
    if min(lengths) == max(lengths):
        return Layout.full(len(lengths), lengths[0], device)
    return Layout.padded(lengths, device=device)
