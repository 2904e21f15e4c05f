"""Rows that are broken by themselves: something lacks, or the characters are not what was meant."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from glassformer.data.doctor.check import Check, Specimen
from glassformer.data.doctor.finding import Finding, Where, counted, named

LOST = "\ufffd"  # what stands where a character could not be decoded

# UTF-8 that was read as cp1252: a lead byte's character, then those of the bytes that follow it.
FOLLOWING = bytes(range(0x80, 0xC0)).decode("cp1252", "ignore")
GARBLED = re.compile(f"[ÂÃÐÑ][{FOLLOWING}]|[âãäå][{FOLLOWING}]{{2}}")


class EmptyRows(Check):
    """Rows without a text, or without whatever else the job needs."""

    def __init__(self) -> None:
        self.lacking: defaultdict[str, list[int]] = defaultdict(list)

    def see(self, row: Specimen) -> None:
        """Complete, so there is nothing to say."""

    def see_incomplete(self, row: Specimen, lacking: str) -> None:
        self.lacking[lacking].append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        for role, numbers in self.lacking.items():
            yield Finding(
                kind="empty rows",
                severity="warning",
                what=f"{counted(len(numbers), 'row')} without a {role}",
                advice="training leaves them out; fill them in, or drop them with --fix",
                count=len(numbers),
                rows=named(numbers, where),
            )

    def to_drop(self) -> Mapping[int, str]:
        return {number: f"empty {role}" for role, rows in self.lacking.items() for number in rows}


class GarbledText(Check):
    """Characters that were lost, or garbled, when somebody read the text in a wrong encoding."""

    def __init__(self) -> None:
        self.lost: list[int] = []
        self.garbled: list[int] = []

    def see(self, row: Specimen) -> None:
        if row.text.isascii():
            return
        if LOST in row.text:
            self.lost.append(row.number)
        if is_garbled(row.text):
            self.garbled.append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        faults = {
            "lost characters": (self.lost, f"with a character that was lost ({LOST})"),
            "garbled text": (self.garbled, "with UTF-8 that was read as cp1252 (Ã© for é)"),
        }
        for kind, (numbers, words) in faults.items():
            if numbers:
                yield Finding(
                    kind=kind,
                    severity="warning",
                    what=f"{counted(len(numbers), 'row')} {words}",
                    advice="the damage was done before: export the data again, as UTF-8",
                    count=len(numbers),
                    rows=named(numbers, where),
                )


def is_garbled(text: str) -> bool:
    """Whether a part of the text is UTF-8 that was read as cp1252.

    >>> is_garbled("cafÃ©"), is_garbled("itâ€™s"), is_garbled("CAFÉ Â l'âge")
    (True, True, False)
    """
    return any(_is_utf8(match[0]) for match in GARBLED.finditer(text))


def _is_utf8(piece: str) -> bool:
    try:
        piece.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return False
    return True
