"""A finding: one fact about the data that matters, with the rows concerned."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

SEVERITIES = ("error", "warning", "note")  # the worst first
SHOWN = 5  # rows that a finding names

Where = Callable[[int], str]  # row number to "reviews.csv row 17"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, and what to do about it.

    Attributes:
        kind: A stable identifier, for programs.
        severity: An error stops training or invalidates its scores, a warning may make the model
            worse, a note is worth knowing.
        what: One sentence, with counts.
        numbers: The rows concerned, or some of them.
        rows: The first of them, by file.
        total: Their number, unless all are in `numbers`.
    """

    kind: str
    severity: str
    what: str
    advice: str
    numbers: Sequence[int] = ()
    rows: tuple[str, ...] = ()
    total: int | None = None

    @property
    def count(self) -> int:
        """Number of rows concerned."""
        return len(self.numbers) if self.total is None else self.total

    @property
    def line(self) -> str:
        """The finding in one line.

        >>> Finding("x", "note", "It rains", "wait").line
        'note: It rains; wait'
        """
        first = f" (first {self.rows[0]})" if self.rows else ""
        return f"{self.severity}: {self.what}{first}; {self.advice}"

    def located(self, where: Where) -> "Finding":
        """The same with the locations of its first rows."""
        return replace(self, rows=tuple(map(where, self.numbers[:SHOWN])) or self.rows)

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        values = asdict(self) | {"count": self.count, "rows": list(self.rows)}
        return {name: value for name, value in values.items() if name not in ("numbers", "total")}


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by severity, then by the number of rows concerned."""
    return tuple(sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), -f.count)))


def counted(count: int, noun: str) -> str:
    """A count with its noun in the right number.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
