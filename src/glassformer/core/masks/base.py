"""Mask: the rule, how it combines with others, and how it becomes a tensor or a picture."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.core.layout import Layout

Index = Any  # an int, or a tensor of ints that broadcasts with the others
Rule = Callable[[Index, Index, Index], Any]
Band = tuple[int | None, int | None]


class Mask(ABC):
    """Says whether a query at position `q` may see a key at position `k` of the same row."""

    rows = 1  # how many rows it describes; 1 applies to all

    @abstractmethod
    def sees(self, row: Index, q: Index, k: Index) -> Any:
        """The rule for plain integers; for tensors of them too, unless it needs a table."""

    def rule(self, device: torch.device) -> Rule:
        """The rule for tensors on a device, with its tables already there."""
        return self.sees

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
        """The rule as a tensor over padded rows, padding keys hidden; `b` is 1 if all agree."""
        self.check(queries)
        row = torch.arange(self.rows, device=queries.device)[:, None, None]
        may_see = self.rule(queries.device)
        allowed = may_see(
            row, queries.positions[:, :, None], keys.positions[:, None, :]
        )  # (b, T, S)
        if not keys.is_full:
            allowed = allowed & keys.real[:, None, :]
        return allowed[:, None]

    def check(self, queries: Layout) -> None:
        """Refuse queries that the mask does not describe."""
        self.check_rows(queries.rows)

    def check_rows(self, rows: int) -> None:
        """Refuse a batch of a different size than the mask describes."""
        if self.rows not in (1, rows):
            raise ValueError(
                f"{self} describes {self.rows} rows, but the batch has {rows}; "
                f"describe 1 row or {rows}"
            )

    def picture(self, queries: int = 8, keys: int | None = None, row: int = 0) -> str:
        """Draw it: one line per query, one column per key; # may be seen, . may not.

        >>> from glassformer.core.masks import causal, window
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
            f"<title>{escape(str(self))}: one line per query, one column per key</title>"
            f'<rect width="{side}" height="{side}" fill="#e8e8ee"/>'
            f'<g fill="#3b5bdb">{squares}</g></svg>'
        )


@dataclass(frozen=True, repr=False)
class Combined(Mask):
    """Two masks as one; where one describes a single row, that row applies to all of the other."""

    left: Mask
    right: Mask

    def __post_init__(self) -> None:
        self.left.check_rows(self.rows)
        self.right.check_rows(self.rows)

    def check(self, queries: Layout) -> None:
        self.left.check(queries)
        self.right.check(queries)

    @property
    def rows(self) -> int:  # type: ignore[override]
        return max(self.left.rows, self.right.rows)


@dataclass(frozen=True, repr=False)
class Both(Combined):
    """What both sides allow."""

    @property
    def band(self) -> Band | None:
        if self.left.band is None or self.right.band is None:
            return None
        (before, after), (other_before, other_after) = self.left.band, self.right.band
        return _tighter(before, other_before), _tighter(after, other_after)

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return self.left.sees(row, q, k) & self.right.sees(row, q, k)

    def rule(self, device: torch.device) -> Rule:
        left, right = self.left.rule(device), self.right.rule(device)
        return lambda row, q, k: left(row, q, k) & right(row, q, k)

    def __repr__(self) -> str:
        right = f"({self.right})" if isinstance(self.right, Both) else f"{self.right}"
        return f"{self.left} & {right}"


@dataclass(frozen=True, repr=False)
class Either(Combined):
    """What either side allows."""

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return self.left.sees(row, q, k) | self.right.sees(row, q, k)

    def rule(self, device: torch.device) -> Rule:
        left, right = self.left.rule(device), self.right.rule(device)
        return lambda row, q, k: left(row, q, k) | right(row, q, k)

    def __repr__(self) -> str:
        return f"({self.left} | {self.right})"


def _tighter(a: int | None, b: int | None) -> int | None:
    """The smaller of two limits; None means no limit."""
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)
