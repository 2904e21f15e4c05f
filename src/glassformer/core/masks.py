"""Masks: who may see whom. True always means *may see*.

A mask is a rule about absolute positions, not a tensor: the same `causal & window(64)` is right for
a whole sequence, for one new token against a cache, and for sequences packed end to end. Padding is
no mask: it follows from the `Layout`. A mask is an immutable value (it compares, hashes and prints
as what it is), so a kernel can ask for its parts and use its own fast form.

To add a rule, write one frozen dataclass with `sees` and a picture of it in
tests/core/test_masks.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from glassformer.core.layout import Layout

Index = Any  # an int, or a tensor of ints that broadcasts with the others
Band = tuple[int | None, int | None]


class Mask(ABC):
    """Says whether a query at position `q` may see a key at position `k` of the same row."""

    rows = 1  # how many rows it describes; one serves all

    @abstractmethod
    def sees(self, row: Index, q: Index, k: Index) -> Any:
        """The rule. Works on plain integers (one bool) and on tensors (a bool each)."""

    @property
    def band(self) -> Band | None:
        """(before, after) when a query sees exactly that many keys on each side, None when not.

        A side of None has no limit: `everything` is (None, None), `causal` is (None, 0).
        """
        return None

    def __and__(self, other: "Mask") -> "Mask":
        return Both(self, other)

    def __or__(self, other: "Mask") -> "Mask":
        return Either(self, other)

    def table(self, queries: Layout, keys: Layout) -> Bool[Tensor, "b 1 T S"]:
        """Lay the rule out over padded rows and hide padding keys; `b` is 1 if all rows agree."""
        self.check_rows(queries.rows)
        row = torch.arange(self.rows, device=queries.device)[:, None, None]
        allowed = self.sees(
            row, queries.positions[:, :, None], keys.positions[:, None, :]
        )  # (b, T, S)
        if not keys.is_full:
            allowed = allowed & keys.real[:, None, :]
        return allowed[:, None]

    def check_rows(self, rows: int) -> None:
        """Refuse a batch of another size than the one described."""
        if self.rows not in (1, rows):
            raise ValueError(
                f"{self} describes {self.rows} rows, but the batch has {rows}; "
                f"describe one or {rows}"
            )

    def picture(self, queries: int = 8, keys: int | None = None, row: int = 0) -> str:
        """Draw it: a line a query, a column a key, # may be seen and . may not.

        >>> print((causal & window(2)).picture(4))
        #...
        ##..
        .##.
        ..##
        """
        cells = ([self.sees(row, q, k) for k in range(keys or queries)] for q in range(queries))
        return "\n".join("".join("#" if seen else "." for seen in line) for line in cells)

    def _repr_svg_(self) -> str:
        """The same picture, as notebooks show it."""
        size, lines = 14, self.picture(12).splitlines()
        squares = "".join(
            f'<rect x="{x * size}" y="{y * size}" width="{size - 1}" height="{size - 1}"/>'
            for y, line in enumerate(lines)
            for x, cell in enumerate(line)
            if cell == "#"
        )
        side = size * len(lines)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}">'
            f"<title>{self}: a line a query, a column a key</title>"
            f'<rect width="{side}" height="{side}" fill="#e8e8ee"/>'
            f'<g fill="#3b5bdb">{squares}</g></svg>'
        )


@dataclass(frozen=True, repr=False)
class Everything(Mask):
    """Every query sees every key of its row. The mask of encoders and of cross-attention."""

    @property
    def band(self) -> Band:
        return None, None

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return (q >= 0) & (k >= 0)

    def __repr__(self) -> str:
        return "everything"


@dataclass(frozen=True, repr=False)
class Causal(Mask):
    """The past and the present, never the future."""

    @property
    def band(self) -> Band:
        return None, 0

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return k <= q

    def __repr__(self) -> str:
        return "causal"


@dataclass(frozen=True, repr=False)
class Window(Mask):
    """The position itself and its nearest neighbours, fewer than `size` steps away."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(
                f"a window must hold at least the position itself: got size {self.size}, "
                f"use 1 or more"
            )

    @property
    def band(self) -> Band:
        return self.size - 1, self.size - 1

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return (q - k < self.size) & (k - q < self.size)

    def __repr__(self) -> str:
        return f"window({self.size})"


@dataclass(frozen=True, repr=False)
class Prefix(Mask):
    """The first `length` positions, whoever asks. `causal | prefix(n)` is a prefix LM."""

    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"a prefix must have at least 1 position, got {self.length}")

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return (k < self.length) & (q >= 0)

    def __repr__(self) -> str:
        return f"prefix({self.length})"


@dataclass(frozen=True, repr=False)
class Documents(Mask):
    """Only the same document: a row holds several, end to end; the last goes on for ever."""

    lengths: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:  # type: ignore[override]
        return len(self.lengths)

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        ids = tuple(
            tuple(number for number, length in enumerate(row) for _ in range(length))
            for row in self.lengths
        )
        return _entry(ids, row, q) == _entry(ids, row, k)

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

    def __repr__(self) -> str:
        return f"valid_lengths({_as_given(self.lengths)})"


@dataclass(frozen=True, repr=False)
class Both(Mask):
    """What both sides allow."""

    left: Mask
    right: Mask

    def __post_init__(self) -> None:
        self.left.check_rows(self.rows)
        self.right.check_rows(self.rows)

    @property
    def rows(self) -> int:  # type: ignore[override]
        return max(self.left.rows, self.right.rows)

    @property
    def band(self) -> Band | None:
        if self.left.band is None or self.right.band is None:
            return None
        before, after = (
            _nearer(*side) for side in zip(self.left.band, self.right.band, strict=True)
        )
        return before, after

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return self.left.sees(row, q, k) & self.right.sees(row, q, k)

    def __repr__(self) -> str:
        return f"{self.left} & {self.right}"


@dataclass(frozen=True, repr=False)
class Either(Mask):
    """What either side allows."""

    left: Mask
    right: Mask

    def __post_init__(self) -> None:
        self.left.check_rows(self.rows)
        self.right.check_rows(self.rows)

    @property
    def rows(self) -> int:  # type: ignore[override]
        return max(self.left.rows, self.right.rows)

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return self.left.sees(row, q, k) | self.right.sees(row, q, k)

    def __repr__(self) -> str:
        return f"({self.left} | {self.right})"


everything = Everything()
causal = Causal()
window = Window
prefix = Prefix


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


def _nearer(a: int | None, b: int | None) -> int | None:
    """The smaller of two limits, where None is no limit."""
    return min((limit for limit in (a, b) if limit is not None), default=None)


def _entry(table: tuple[tuple[int, ...], ...], row: Index, index: Index) -> Any:
    """table[row][index], for integers and for tensors; past a row's end, its last entry."""
    if isinstance(index, int):
        numbers = table[row if len(table) > 1 else 0]
        return numbers[min(index, len(numbers) - 1)]
    longest = max(len(numbers) for numbers in table)
    square = torch.tensor(
        [numbers + numbers[-1:] * (longest - len(numbers)) for numbers in table],
        device=index.device,
    )
    return square[row if len(table) > 1 else row * 0, index.clamp(max=longest - 1)]
