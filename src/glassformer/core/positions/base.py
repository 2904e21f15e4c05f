"""Position: how attention, which sees a set, learns the order. Three hooks that do nothing here."""

from torch import nn

from glassformer.core.bias import DistanceBias
from glassformer.core.layout import Layout
from glassformer.core.shapes import NewKeys, Queries, Vectors


class Position(nn.Module):
    """No positions at all; every scheme starts from here and overrides one hook.

    Args:
        dim: Width of the vectors going into attention.
        heads: Number of query heads.
        max_length: The longest sequence to expect. Only a learned table cannot extend beyond it.
        width: Width of one head of queries and keys; `dim / heads` by default.
    """

    def __init__(self, dim: int, heads: int, max_length: int, *, width: int | None = None) -> None:
        super().__init__()
        self.dim, self.heads, self.max_length = dim, heads, max_length
        self.width = dim // heads if width is None else width

    def embed(self, x: Vectors, layout: Layout) -> Vectors:
        """The first hook: change the input, once, before the first block."""
        return x

    def turn(self, q: Queries, k: NewKeys, layout: Layout) -> tuple[Queries, NewKeys]:
        """The second hook: change queries and keys, in every layer, before keys are cached."""
        return q, k

    def bias(self, q: Queries, queries: Layout, keys: Layout) -> DistanceBias | None:
        """The third hook: add to the scores, in every layer."""
        return None
