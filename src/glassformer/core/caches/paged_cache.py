"""PagedCache: some sequences of a `PagePool`, as the caches of one step."""

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


class PagedCache(KeyCache):
    """One layer of a pool, as the cache of one batch for one step; its last page is spare."""

    def __init__(
        self,
        k_pages: Float[Tensor, "pages size G K"],
        v_pages: Float[Tensor, "pages size G W"],
        table: Int[Tensor, "B most"],
        keys: Layout,
    ) -> None:
        self.k_pages, self.v_pages, self._table, self._keys = k_pages, v_pages, table, keys

    def place(self, layout: Layout) -> Layout:
        if layout.starts is None and layout is not self._keys:
            raise ValueError("a paged cache needs the layout that PagePool.extend returned with it")
        return layout

    def append(self, k: NewKeys, v: NewValues, layout: Layout) -> tuple[Keys, Values, Layout]:
        refuse_other_batch(len(self._table), layout)
        refuse_gradient("a paged cache", k, v)
        refuse_other_kind(self.k_pages, by_token(k))
        refuse_other_kind(self.v_pages, by_token(v))
        places = self.places(layout)
        self.k_pages[places], self.v_pages[places] = by_token(k), by_token(v)
        return self.with_past(k, v, layout)

    def with_past(self, k: NewKeys, v: NewValues, layout: Layout) -> tuple[Keys, Values, Layout]:
        """All keys and values of the batch, the newest of which are in their pages already."""
        if layout is self._keys:  # there is nothing else
            return k, v, layout
        if not (
            layout.is_full or layout.is_packed
        ):  # the spare page is read as padding, so it stays clean
            self.k_pages[-1], self.v_pages[-1] = 0, 0
        return self._gathered(self.k_pages), self._gathered(self.v_pages), self._keys

    def memory(self) -> Memory:
        """All keys and values of the batch."""
        return Memory(self._gathered(self.k_pages), self._gathered(self.v_pages), self._keys)

    def places(self, layout: Layout) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """The page and the slot in it for every token, worked out by the first layer."""
        if PagedCache not in layout.memo:
            layout.memo[PagedCache] = self._find_places(layout)
        return layout.memo[PagedCache]

    def _find_places(self, layout: Layout) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """The same; padding goes to the spare page."""
        row, position = addresses(layout)
        pages, size = self.k_pages.shape[:2]
        number = (position // size).clamp(max=self._table.shape[1] - 1)
        page = set_aside(self._table[row, number], layout, pages - 1)
        return page, position % size

    def _gathered(self, pages: Float[Tensor, "pages size G K"]) -> Keys:
        """The pages of each row, end to end."""
        if self._keys.is_packed:
            return pages[self.places(self._keys)]
        return pages[self._table].flatten(1, 2)[:, : self._keys.longest].transpose(1, 2)
