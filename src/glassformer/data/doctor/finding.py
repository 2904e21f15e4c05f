"""A finding: one fact about the data that matters, with the rows concerned."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

SEVERITIES = ("error", "warning", "note")  # the worst first
SHOWN = 5  # rows that a finding names

Where = Callable[[int], str]  # row number to "reviews.csv row 17"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A problem, and what to do about it.

    Attributes:
        kind: A stable identifier, for programs.
        severity: An error stops training or invalidates its scores, a warning may make the model
            worse, a note is worth knowing.
        what: One sentence, with counts.
        count: Number of rows concerned.
        rows: The first of them.
    """

    kind: str
    severity: str
    what: str
    advice: str
    count: int
    rows: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The finding in one line.

        >>> Finding(kind="x", severity="note", what="It rains", advice="wait", count=0).line
        'note: It rains; wait'
        """
        first = f" (first {self.rows[0]})" if self.rows else ""
        return f"{self.severity}: {self.what}{first}; {self.advice}"

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self) | {"rows": list(self.rows)}


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by severity, then by the number of rows concerned."""
    return tuple(sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), -f.count)))


def named(numbers: Iterable[int], where: Where) -> tuple[str, ...]:
    """The locations of the first few rows."""
    return tuple(where(int(number)) for number in islice(numbers, SHOWN))


def counted(count: int, noun: str) -> str:
    """A count with its noun in the right number.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
