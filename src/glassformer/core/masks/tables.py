"""The rules that need a table: document boundaries, and the number of keys of each query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.core.masks.base import Index, Mask, Rule


@dataclass(frozen=True, repr=False)
class Documents(Mask):
    """Only the same document: a row holds several, end to end, and the last has no end."""

    lengths: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:  # type: ignore[override]
        return len(self.lengths)

    @property
    def ids(self) -> tuple[tuple[int, ...], ...]:
        """The index of each position's document."""
        return tuple(
            tuple(document for document, length in enumerate(row) for _ in range(length))
            for row in self.lengths
        )

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return _entry(self.ids, row, q) == _entry(self.ids, row, k)

    def rule(self, device: torch.device) -> Rule:
        document = _look_up(self.ids, device)
        return lambda row, q, k: document(row, q) == document(row, k)

    def __repr__(self) -> str:
        first, *others = (list(row) for row in self.lengths)
        return f"documents({[first, *others] if others else first})"


@dataclass(frozen=True, repr=False)
class ValidLengths(Mask):
    """Query q of a row sees the first `lengths[row][q]` keys; one number applies to all queries."""

    lengths: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:  # type: ignore[override]
        return len(self.lengths)

    def check(self, queries: Layout) -> None:
        super().check(queries)
        count = len(self.lengths[0])
        if count > 1 and not queries.fits(count):
            raise ValueError(
                f"{self} describes {count} queries, but a row has {int(queries.ends.max())}; "
                f"give each row one number, or a list with one for each of its queries"
            )

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return k < _entry(self.lengths, row, q)

    def rule(self, device: torch.device) -> Rule:
        limit = _look_up(self.lengths, device)
        return lambda row, q, k: k < limit(row, q)

    def __repr__(self) -> str:
        if len(self.lengths[0]) == 1:
            return f"valid_lengths({[number for (number,) in self.lengths]})"
        return f"valid_lengths({[list(row) for row in self.lengths]})"


def documents(lengths: Sequence[int] | Sequence[Sequence[int]]) -> Documents:
    """Documents of these lengths in every row, or a list of lengths for each row.

    For training, pack instead: give each document a row of its own in `Layout.packed`.
    """
    rows = lengths if lengths and isinstance(lengths[0], Sequence) else [lengths]
    return Documents(_checked(rows, least=1))


def valid_lengths(
    lengths: Sequence[int] | Sequence[Sequence[int]] | Int[Tensor, " B"] | Int[Tensor, "B T"],
) -> ValidLengths:
    """How many keys may be seen: one number per row, or a list per row with one per query.

    A single number or list applies to all rows. As in `core.classic` and "Dive into deep learning".

    >>> print(valid_lengths([[1, 3, 2]]).picture(3))
    #..
    ###
    ##.
    """
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    rows = [row if isinstance(row, Sequence) else [row] for row in values] or [[]]
    checked = _checked(rows, least=0)
    counts = [len(row) for row in checked]
    if min(counts) < max(counts):
        raise ValueError(
            f"each row needs a length for each query, got lists of {counts}; pad the shorter ones"
        )
    return ValidLengths(checked)


def _checked(rows: Sequence[Any], least: int) -> tuple[tuple[int, ...], ...]:
    """The numbers as one tuple per row."""
    for row in rows:
        if not row or min(row) < least:
            raise ValueError(f"each row needs lengths of {least} or more, got {list(row)}")
    return tuple(tuple(row) for row in rows)


def _entry(table: tuple[tuple[int, ...], ...], row: int, index: int) -> int:
    """table[row][index]; a single row applies to all, and past its end the last entry repeats."""
    numbers = table[row if len(table) > 1 else 0]
    return numbers[min(index, len(numbers) - 1)]


def _look_up(
    table: tuple[tuple[int, ...], ...], device: torch.device
) -> Callable[[Tensor, Tensor], Tensor]:
    """`_entry` for tensors of rows and indices."""
    longest = max(len(numbers) for numbers in table)
    even = [numbers + numbers[-1:] * (longest - len(numbers)) for numbers in table]
    entries = torch.tensor(even, device=device)
    rows = len(table)
    return lambda row, index: entries[row.clamp(max=rows - 1), index.clamp(max=longest - 1)]
