"""Rows of numbers joined end to end, so that a few calls build a batch of thousands."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

Row = Int[np.ndarray, " _"]  # unnamed axis: lengths differ


@dataclass(frozen=True, slots=True)
class Jagged:
    """Rows joined end to end, with their lengths.

    >>> rows = Jagged.of([np.array([5, 6]), np.array([7])])
    >>> rows.after(1).values.tolist(), rows.before(np.array([8, 9])).values.tolist()
    ([5, 6, 1, 7, 1], [8, 5, 6, 9, 7])
    >>> [row.tolist() for row in rows.rows], rows.take(np.array([1, 0, 1])).values.tolist()
    ([[5, 6], [7]], [7, 5, 6, 7])
    """

    values: Int[np.ndarray, " values"]
    lengths: Int[np.ndarray, " rows"]

    @staticmethod
    def of(rows: Sequence[Row]) -> "Jagged":
        """These rows, at least one."""
        return Jagged(np.concatenate(rows), np.array([len(row) for row in rows]))

    @property
    def rows(self) -> list[Row]:
        """The rows as a list."""
        return np.split(self.values, np.cumsum(self.lengths)[:-1])

    def take(self, rows: Int[np.ndarray, " chosen"]) -> "Jagged":
        """Some of the rows, in this order."""
        lengths = self.lengths[rows]
        shift = (np.cumsum(self.lengths) - self.lengths)[rows] - (np.cumsum(lengths) - lengths)
        return Jagged(self.values[np.repeat(shift, lengths) + np.arange(lengths.sum())], lengths)

    def before(self, value: int | Int[np.ndarray, " rows"]) -> "Jagged":
        """Prepend a value to every row: one for all, or one each."""
        starts = np.cumsum(self.lengths) - self.lengths
        return Jagged(np.insert(self.values, starts, value), self.lengths + 1)

    def after(self, value: int | Int[np.ndarray, " rows"]) -> "Jagged":
        """Append a value to every row."""
        return Jagged(np.insert(self.values, np.cumsum(self.lengths), value), self.lengths + 1)
