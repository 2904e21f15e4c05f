"""A check: sees every row once, as rows pass, and says at the end what it found.

It keeps counts, hashes and numbers of rows, not texts, so that data may be larger than memory. To
add one, write a Check in a file here, or beside the job that needs it, and list it in the job's
`checks`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from glassformer.data.doctor.finding import Finding, Where
from glassformer.data.samples import Sample
from glassformer.data.splits import content_key
from glassformer.data.splitter import LISTS

ABOUT = {"where", "group", *LISTS}  # roles that say something about a text

Figures = Mapping[str, Mapping[str, int]]  # small tables by title
Names = Callable[[Sample], list[str]]  # the labels of a sample


@dataclass(frozen=True, slots=True)
class Specimen:
    """A row as checks see it.

    Attributes:
        number: Counts all rows of all files from 0.
        part: The part it was given for: train, valid or test.
        sample: What the job reads, by role.
        text: All of it that is read, rather than said about it.
        content: A hash of the text, whatever its letter case, white space and Unicode form.
        group: What it belongs to, or nothing.
        others: Columns that play no role.
    """

    number: int
    part: str
    sample: Sample
    text: str
    content: int
    group: str = ""
    others: Mapping[str, str] = field(default_factory=dict)


def specimen(
    number: int,
    part: str,
    sample: Sample,
    *,
    group: str = "",
    others: Mapping[str, str] | None = None,
) -> Specimen:
    """A row with its text and the hash of it."""
    text = " ".join(str(value) for role, value in sample.items() if role not in ABOUT)
    return Specimen(number, part, sample, text, hashed(content_key(text)), group, others or {})


def hashed(text: str) -> int:
    """A text as a number of 64 bits."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest)


class Check(ABC):
    """Looks for one kind of fault.

    Attributes:
        needs_all: Whether it would be wrong about a part of the rows.
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
