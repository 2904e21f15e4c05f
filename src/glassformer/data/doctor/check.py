"""A check: sees every row once, and reports its findings at the end: facts that matter, with rows.

It keeps counts, hashes and row numbers, not samples, so that data may be larger than memory. To add
one, write a Check next to the job that needs it, and list it in the `checks` of its schema.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Generic, TypeVar

from glassformer import notebook
from glassformer.data.samples import Sample
from glassformer.errors import worded
from glassformer.terminal import printable

SEVERITIES = ("error", "warning", "note")  # the worst first
SHOWN = 5  # rows that a finding names

Where = Callable[[int], str]  # row number to "reviews.csv row 17"
Kept = TypeVar("Kept")
Figures = Mapping[str, Mapping[str, int | float]]  # small tables by title
Answer = Callable[[Sample], str]  # the expected answer for a sample, as one string


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

    def __repr__(self) -> str:
        return printable(worded(self.line))

    def _repr_html_(self) -> str:
        return notebook.paragraphs([worded(self.line)])

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


@dataclass(frozen=True, slots=True)
class Specimen:
    """A row as checks see it.

    Attributes:
        number: Counts all rows of all files from 0.
        split: The split of its file: train, valid or test.
        sample: The values that the job reads, by role.
        content: A hash of what makes two samples the same.
        group: Its group, or empty.
        others: Columns without a role.
    """

    number: int
    split: str
    sample: Sample
    content: int
    group: str = ""
    others: Mapping[str, str] = field(default_factory=dict)


class Check(ABC):
    """Looks for one kind of problem.

    Attributes:
        needs_all: Whether it needs every row to be correct.
        slow: Whether a brief examination shows it only some of the rows.
    """

    needs_all: bool = False
    slow: bool = False

    @abstractmethod
    def see(self, row: Specimen) -> None:
        """Process a row."""

    def see_incomplete(self, row: Specimen, fault: str) -> None:  # noqa: B027
        """Process a row that is left out, for a reason such as "empty text"."""

    @abstractmethod
    def findings(self) -> Iterator[Finding]:
        """The findings, once every row was seen."""

    def figures(self) -> Figures:
        """Statistics worth showing, whether or not there is a problem."""
        return {}

    def to_drop(self) -> Mapping[int, str]:
        """Rows that a cleaned copy drops, and why."""
        return {}

    def corrections(self) -> Mapping[str, Callable[[Any], Any]]:
        """How a cleaned copy corrects the value of a role, by role."""
        return {}


class HashSample(Generic[Kept]):
    """Rows with the smallest hashes: as good as random, whatever their order, and of fixed size."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._heap: list[tuple[int, int, Kept]] = []  # the largest hash on top

    def see(self, number: int, hash_: int, kept: Callable[[], Kept]) -> None:
        """Offer a row; what is kept of it is made only if it is in the sample."""
        rank = (-hash_, -number)
        if len(self._heap) < self.most:
            heapq.heappush(self._heap, (*rank, kept()))
        elif rank > self._heap[0][:2]:
            heapq.heapreplace(self._heap, (*rank, kept()))

    def rows(self) -> list[tuple[int, Kept]]:
        """The numbers of the sampled rows, in order, and what was kept of each."""
        return [(-number, kept) for _, number, kept in sorted(self._heap, key=lambda e: -e[1])]


class OnlyWith(Check):
    """A check of the samples that have a role, where some data have it and others do not."""

    def __init__(self, role: str, check: Check) -> None:
        self.role, self.check, self.seen = role, check, False

    def see(self, row: Specimen) -> None:
        if self.role in row.sample:
            self.seen = True
            self.check.see(row)

    def findings(self) -> Iterator[Finding]:
        return self.check.findings() if self.seen else iter(())

    def figures(self) -> Figures:
        return self.check.figures() if self.seen else {}

    def to_drop(self) -> Mapping[int, str]:
        return self.check.to_drop()

    def corrections(self) -> Mapping[str, Callable[[Any], Any]]:
        return self.check.corrections()
