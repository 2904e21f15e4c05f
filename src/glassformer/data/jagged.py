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
    >>> rows.between(8, 9).values.tolist()
    [8, 5, 6, 9, 8, 7, 9]
    >>> [row.tolist() for row in rows.rows], rows.take(np.array([1, 0, 1])).values.tolist()
    ([[5, 6], [7]], [7, 5, 6, 7])
    >>> rows.starts.tolist(), rows.row_of.tolist(), rows.places.tolist()
    ([0, 2], [0, 0, 1], [0, 1, 0])
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

    @property
    def starts(self) -> Int[np.ndarray, " rows"]:
        """Where each row begins in `values`."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def row_of(self) -> Int[np.ndarray, " values"]:
        """The row of each value."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def places(self) -> Int[np.ndarray, " values"]:
        """Where each value stands in its row."""
        return places_in_rows(self.lengths)

    def take(self, rows: Int[np.ndarray, " chosen"]) -> "Jagged":
        """Some of the rows, in this order."""
        lengths = self.lengths[rows]
        shift = self.starts[rows] - (np.cumsum(lengths) - lengths)
        return Jagged(self.values[np.repeat(shift, lengths) + np.arange(lengths.sum())], lengths)

    def before(self, value: int | Int[np.ndarray, " rows"]) -> "Jagged":
        """Prepend a value to every row: one for all, or one each."""
        return Jagged(np.insert(self.values, self.starts, value), self.lengths + 1)

    def after(self, value: int | Int[np.ndarray, " rows"]) -> "Jagged":
        """Append a value to every row."""
        return Jagged(np.insert(self.values, np.cumsum(self.lengths), value), self.lengths + 1)

    def between(self, first: int, last: int) -> "Jagged":
        """Put every row between two values."""
        lengths = self.lengths + 2
        ends = np.cumsum(lengths)
        inside = np.ones(lengths.sum(), dtype=bool)
        inside[ends - lengths] = inside[ends - 1] = False
        values = np.empty(len(inside), dtype=self.values.dtype)
        values[ends - lengths], values[ends - 1], values[inside] = first, last, self.values
        return Jagged(values, lengths)


def places_in_rows(lengths: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " values"]:
    """Numbers from 0 on for each row of these lengths, end to end."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
