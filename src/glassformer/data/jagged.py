"""Rows of numbers joined end to end, so that a batch of thousands is made by a few calls."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

Row = Int[np.ndarray, " _"]  # no name: each has its own length


@dataclass(frozen=True, slots=True)
class Jagged:
    """Rows end to end, and how long each is.

    >>> rows = Jagged.of([np.array([5, 6]), np.array([7])])
    >>> rows.after(1).values.tolist(), rows.before(np.array([8, 9])).values.tolist()
    ([5, 6, 1, 7, 1], [8, 5, 6, 9, 7])
    >>> [row.tolist() for row in rows.rows]
    [[5, 6], [7]]
    """

    values: Int[np.ndarray, " values"]
    lengths: Int[np.ndarray, " rows"]

    @staticmethod
    def of(rows: Sequence[Row]) -> "Jagged":
        """These rows, at least one."""
        return Jagged(np.concatenate(rows), np.array([len(row) for row in rows]))

    @property
    def rows(self) -> list[Row]:
        """Each by itself."""
        return np.split(self.values, np.cumsum(self.lengths)[:-1])

    def before(self, value: int | Int[np.ndarray, " rows"]) -> "Jagged":
        """Every row with a value in front: the same for all, or its own for each."""
        starts = np.cumsum(self.lengths) - self.lengths
        return Jagged(np.insert(self.values, starts, value), self.lengths + 1)

    def after(self, value: int | Int[np.ndarray, " rows"]) -> "Jagged":
        """Every row with a value at its end."""
        return Jagged(np.insert(self.values, np.cumsum(self.lengths), value), self.lengths + 1)
