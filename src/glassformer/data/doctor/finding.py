"""A finding: one thing about the data that a person should know, with the rows it is about."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

SEVERITIES = ("error", "warning", "note")  # the worst first
SHOWN = 5  # rows that a finding names

Where = Callable[[int], str]  # the number of a row to "reviews.csv row 17"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What was found, and what to do about it.

    Attributes:
        kind: A few words that stay the same, for programs.
        severity: An error stops training or makes its scores wrong, a warning may make the model
            worse, a note is worth knowing.
        what: One sentence, with counts.
        count: Rows it is about.
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
        """All of it in one line.

        >>> Finding(kind="x", severity="note", what="It rains", advice="wait", count=0).line
        'note: It rains; wait'
        """
        first = f" (first {self.rows[0]})" if self.rows else ""
        return f"{self.severity}: {self.what}{first}; {self.advice}"

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self) | {"rows": list(self.rows)}


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """In the order of severity; of equals, those about more rows first."""
    return tuple(sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), -f.count)))


def named(numbers: Iterable[int], where: Where) -> tuple[str, ...]:
    """The first few rows, as a person finds them."""
    return tuple(where(int(number)) for number in islice(numbers, SHOWN))


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
