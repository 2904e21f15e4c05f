"""A check: sees every row once, and reports its findings at the end.

It keeps counts, hashes and row numbers, not samples, so that data may be larger than memory. To add
one, write a Check next to the job that needs it, and list it in the `checks` of its schema.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from glassformer.data.doctor.finding import Finding, Where
from glassformer.data.samples import Sample

Figures = Mapping[str, Mapping[str, int | float]]  # small tables by title
Answer = Callable[[Sample], str]  # the expected answer for a sample, as one string


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
    """

    needs_all: bool = False

    @abstractmethod
    def see(self, row: Specimen) -> None:
        """Process a row."""

    def see_incomplete(self, row: Specimen, fault: str) -> None:  # noqa: B027
        """Process a row that is left out, for a reason such as "empty text"."""

    @abstractmethod
    def findings(self, where: Where) -> Iterator[Finding]:
        """The findings. `where` gives the location of a row."""

    def figures(self) -> Figures:
        """Statistics worth showing, whether or not there is a problem."""
        return {}

    def to_drop(self) -> Mapping[int, str]:
        """Rows that a cleaned copy drops, and why."""
        return {}


class OnlyWith(Check):
    """A check of the samples that have a role, where some data have it and others do not."""

    def __init__(self, role: str, check: Check) -> None:
        self.role, self.check, self.seen = role, check, False

    def see(self, row: Specimen) -> None:
        if self.role in row.sample:
            self.seen = True
            self.check.see(row)

    def findings(self, where: Where) -> Iterator[Finding]:
        return self.check.findings(where) if self.seen else iter(())

    def figures(self) -> Figures:
        return self.check.figures() if self.seen else {}

    def to_drop(self) -> Mapping[int, str]:
        return self.check.to_drop()
