"""Position: how a model that sees a set comes to see a sequence. Three doors, all shut here."""

from torch import nn

from glassformer.core.bias import DistanceBias
from glassformer.core.layout import Layout
from glassformer.core.shapes import NewKeys, Queries, Vectors


class Position(nn.Module):
    """No sense of order at all; every scheme starts from here and opens one door.

    Args:
        dim: Width of the vectors going into attention.
        heads: Number of query heads.
        max_length: The longest sequence to expect. Only a learned table cannot go beyond it.
        width: Width of one head of queries and keys; `dim / heads` unless told otherwise.
    """

    def __init__(self, dim: int, heads: int, max_length: int, *, width: int | None = None) -> None:
        super().__init__()
        self.dim, self.heads, self.max_length = dim, heads, max_length
        self.width = dim // heads if width is None else width

    def embed(self, x: Vectors, layout: Layout) -> Vectors:
        """The first door: change the input, once, before the first block."""
        return x

    def turn(self, q: Queries, k: NewKeys, layout: Layout) -> tuple[Queries, NewKeys]:
        """The second door: change queries and keys, in every layer, before keys are cached."""
        return q, k

    def bias(self, q: Queries, queries: Layout, keys: Layout) -> DistanceBias | None:
        """The third door: add to the scores, in every layer."""
        return None
