"""The rules that look something up: whose document it is, how many keys a query has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.core.masks.base import Index, Mask, Rule


@dataclass(frozen=True, repr=False)
class Documents(Mask):
    """Only the same document: a row holds several, end to end; the last goes on for ever."""

    lengths: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:  # type: ignore[override]
        return len(self.lengths)

    @property
    def ids(self) -> tuple[tuple[int, ...], ...]:
        """The number of each position's document."""
        return tuple(
            tuple(number for number, length in enumerate(row) for _ in range(length))
            for row in self.lengths
        )

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return _entry(self.ids, row, q) == _entry(self.ids, row, k)

    def rule(self, device: torch.device) -> Rule:
        document = _look_up(self.ids, device)
        return lambda row, q, k: document(row, q) == document(row, k)

    def __repr__(self) -> str:
        return f"documents({_as_given(self.lengths)})"


@dataclass(frozen=True, repr=False)
class ValidLengths(Mask):
    """Query q of a row sees the first `lengths[row][q]` keys; the last number goes on for ever."""

    lengths: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:  # type: ignore[override]
        return len(self.lengths)

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return k < _entry(self.lengths, row, q)

    def rule(self, device: torch.device) -> Rule:
        limit = _look_up(self.lengths, device)
        return lambda row, q, k: k < limit(row, q)

    def __repr__(self) -> str:
        return f"valid_lengths({_as_given(self.lengths)})"


def documents(lengths: Sequence[int] | Sequence[Sequence[int]]) -> Documents:
    """Documents of these lengths in every row, or a list of lengths for each row.

    For training, pack instead: give each document a row of its own in `Layout.packed`.
    """
    return Documents(_by_row(lengths, least=1))


def valid_lengths(
    lengths: Sequence[int] | Sequence[Sequence[int]] | Int[Tensor, " T"] | Int[Tensor, "B T"],
) -> ValidLengths:
    """How many keys each query may see: one number a query, or such a list for each row."""
    return ValidLengths(
        _by_row(lengths.tolist() if isinstance(lengths, Tensor) else lengths, least=0)
    )


def _by_row(values: Sequence[Any], least: int) -> tuple[tuple[int, ...], ...]:
    """The numbers as a tuple a row; a flat list is one row that serves all."""
    rows = values if values and isinstance(values[0], Sequence) else [values]
    for row in rows:
        if not row or min(row) < least:
            raise ValueError(f"each row needs lengths of {least} or more, got {list(row)}")
    return tuple(tuple(row) for row in rows)


def _as_given(lengths: tuple[tuple[int, ...], ...]) -> list[Any]:
    return list(lengths[0]) if len(lengths) == 1 else [list(row) for row in lengths]


def _entry(table: tuple[tuple[int, ...], ...], row: int, index: int) -> int:
    """table[row][index]; one row serves all, and past a row's end its last entry goes on."""
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
