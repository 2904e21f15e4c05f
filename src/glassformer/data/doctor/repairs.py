"""What a cleaned copy changes in the rows it keeps: stray characters, spellings, encodings.

Checks say how to correct the value of a role (`Check.corrections`); every change is recorded with
the row and the line it was made in.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from glassformer.data.doctor.check import Check, Finding, Specimen
from glassformer.data.doctor.reading import Source
from glassformer.data.rows import Row
from glassformer.wording import counted, shortened

# Control characters, but for line ends and tabs; byte order marks and others without a width.
STRAY = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\u200b\u2060]")

Correction = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a cleaned copy makes, and where in the original."""

    where: str
    what: str


@dataclass(slots=True)
class Repairs:
    """Corrects rows, and records what it changed.

    Attributes:
        corrections: By role, in the order in which they are made.
    """

    corrections: Mapping[str, Sequence[Correction]]
    changes: list[Change] = field(default_factory=list)

    @classmethod
    def of(cls, checks: Sequence[Check]) -> "Repairs":
        """The corrections of some checks."""
        found: dict[str, list[Correction]] = {}
        for check in checks:
            for role, correct in check.corrections().items():
                found.setdefault(role, []).append(correct)
        return cls(found)

    def drop(self, row: Row, why: str) -> None:
        """Record that a row is left out."""
        self.changes.append(Change(row.where, f"left out: {why}"))

    def repaired(self, source: Source, row: Row) -> Row:
        """The row with its values corrected."""
        if is_converted(source, row):
            self.changes.append(Change(row.where, "converted to UTF-8"))
        values = dict(row.values)
        for role, corrections in self.corrections.items():
            column = source.columns.get(role)
            if column in values:
                before = values[column]
                for correct in corrections:
                    values[column] = correct(values[column])
                if values[column] != before:
                    what = f"{role}: {shortened(before)} becomes {shortened(values[column])}"
                    self.changes.append(Change(row.where, what))
        return replace(row, values=values)


def is_converted(source: Source, row: Row) -> bool:
    """Whether a line of the row is not in UTF-8: one of a few, or all of its file are not."""
    encoding = source.encoding
    if encoding is not None and encoding.guess and not encoding.lines:
        return not all(str(value).isascii() for value in row.values.values())
    numbers = encoding.lines.get(row.file, ()) if encoding else ()
    start = row.line or row.number
    # The line break that ends a section of a text begins no line of it.
    breaks = (str(value).removesuffix("\n").count("\n") for value in row.values.values())
    end = start + sum(breaks)
    place = bisect_left(numbers, start)
    return place < len(numbers) and numbers[place] <= end


def tidied(value: Any) -> Any:
    """Without spaces at the ends, control characters and characters that nobody sees.

    The line break that ends a file is no stray character.

    >>> tidied(" a\\x07 fine\\u200b\\nfilm\\t"), tidied("a film\\n")
    ('a fine\\nfilm', 'a film\\n')
    """
    if isinstance(value, list):
        return [tidied(item) for item in value]
    if not isinstance(value, str) or (value.isprintable() and value == value.strip()):
        return value
    tidy = STRAY.sub("", value).strip()
    return value if value == f"{tidy}\n" else tidy


class StrayCharacters(Check):
    """Spaces at the ends of values, control characters, and characters that nobody sees.

    Args:
        roles: The roles that are texts.
    """

    def __init__(self, *roles: str) -> None:
        self.roles = roles
        self.numbers: list[int] = []

    def see(self, row: Specimen) -> None:
        values = [row.sample[role] for role in self.roles if role in row.sample]
        if any(tidied(value) != value for value in values):
            self.numbers.append(row.number)

    def findings(self) -> Iterator[Finding]:
        if self.numbers:
            what = f"{counted(len(self.numbers), 'row')} with stray spaces or control characters"
            advice = "they are easily overlooked; remove them with --fix"
            yield Finding("stray characters", "note", what, advice, self.numbers)

    def corrections(self) -> Mapping[str, Correction]:
        return dict.fromkeys(self.roles, tidied)
