"""DistanceBias: what a score gains for the distance between key and query.

Every scheme that adds to the scores (ALiBi, T5, Shaw, Transformer-XL) is a table over distances,
with or without a line for each query. As a table it costs memory linear in the length; a kernel
that can look distances up while it works never lays out the T x S scores.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from glassformer.core.layout import Layout


@dataclass(frozen=True, eq=False, slots=True)
class DistanceBias:
    """Entry w of the table is for the distance `key - query` = low + w; beyond its ends, the end's.

    Attributes:
        table: (H, W); or one line a query in the form of the queries, (B, H, T, W) or (N, H, W).
        low: The distance of the first entry.
        by_query: Whether there is a line for each query.
    """

    table: Float[Tensor, "... W"]
    low: int
    by_query: bool = False

    def scores(self, queries: Layout, keys: Layout) -> Float[Tensor, "b H T S"]:
        """Lay the table out over padded queries and keys."""
        distance = keys.positions[:, None, :] - queries.positions[:, :, None]  # (b, T, S)
        entry = (distance - self.low).clamp(0, self.table.shape[-1] - 1)
        if self.by_query:
            rows, heads = self.table.shape[:2]
            return self.table.gather(-1, entry[:, None].expand(rows, heads, -1, -1))
        picked = self.table.index_select(-1, entry.flatten())  # (H, b T S)
        return picked.unflatten(-1, entry.shape).transpose(0, 1)
