"""A check: sees every row once, as rows pass, and says at the end what it found.

It keeps counts, hashes and numbers of rows, not samples, so that data may be larger than memory. To
add one, write a Check beside the job that needs it, and list it in the `checks` of its schema.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from glassformer.data.doctor.finding import Finding, Where
from glassformer.data.samples import Sample

Figures = Mapping[str, Mapping[str, int]]  # small tables by title
Answer = Callable[[Sample], str]  # what is to be said about a sample, as one string


@dataclass(frozen=True, slots=True)
class Specimen:
    """A row as checks see it.

    Attributes:
        number: Counts all rows of all files from 0.
        split: The split it was given for: train, valid or test.
        sample: What the job reads, by role.
        content: A hash of what makes two samples the same.
        group: What it belongs to, or nothing.
        others: Columns that play no role.
    """

    number: int
    split: str
    sample: Sample
    content: int
    group: str = ""
    others: Mapping[str, str] = field(default_factory=dict)


class Check(ABC):
    """Looks for one kind of fault.

    Attributes:
        needs_all: Whether it would be wrong about some of the rows.
    """

    needs_all: bool = False

    @abstractmethod
    def see(self, row: Specimen) -> None:
        """Take note of a row."""

    def see_incomplete(self, row: Specimen, lacking: str) -> None:  # noqa: B027
        """Take note of a row that lacks something the job needs."""

    @abstractmethod
    def findings(self, where: Where) -> Iterator[Finding]:
        """What was found. `where` says where a row stands."""

    def figures(self) -> Figures:
        """Numbers worth showing, wrong or not."""
        return {}

    def to_drop(self) -> Mapping[int, str]:
        """Rows that a cleaned copy leaves out, and why."""
        return {}
