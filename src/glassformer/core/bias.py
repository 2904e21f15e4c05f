"""DistanceBias: a term added to a score that depends on the distance between key and query.

Every scheme that adds to the scores (ALiBi, T5, Shaw, Transformer-XL) is a table over distances,
with or without a separate row for each query. The table takes memory linear in the length; a kernel
that looks distances up on the fly never materialises the T x S scores.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from glassformer.core.layout import Layout


@dataclass(frozen=True, eq=False, slots=True)
class DistanceBias:
    """Entry w of the table is the bias at distance `key - query` = low + w; others are clamped.

    Attributes:
        table: (H, W); or one row per query in the form of the queries, (B, H, T, W) or (N, H, W).
        low: The distance of the first entry.
        by_query: Whether each query has its own row.
    """

    table: Float[Tensor, "... W"]
    low: int
    by_query: bool = False

    def scores(self, queries: Layout, keys: Layout) -> Float[Tensor, "b H T S"]:
        """The bias of every pair of padded query and key."""
        distance = keys.positions[:, None, :] - queries.positions[:, :, None]  # (b, T, S)
        entry = (distance - self.low).clamp(0, self.table.shape[-1] - 1)
        if self.by_query:
            rows, heads = self.table.shape[:2]
            return self.table.gather(-1, entry[:, None].expand(rows, heads, -1, -1))
        picked = self.table.index_select(-1, entry.flatten())  # (H, b T S)
        return picked.unflatten(-1, entry.shape).transpose(0, 1)
