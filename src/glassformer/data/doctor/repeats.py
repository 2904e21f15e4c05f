"""Texts that come again: in one part, in two parts, or with another label.

A text is known by a hash of what it says. A cleaned copy keeps every text once: with the label that
most of its rows give it, if that is clear, and in the part it is most needed in, which is test
before valid before train.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from glassformer.data.doctor.check import Check, Names, Specimen, hashed
from glassformer.data.doctor.finding import Finding, Where, counted, named
from glassformer.data.samples import SPLITS

MANY = 0.01  # of the rows: more duplicates than that are no accident
CLEAR = 2 / 3  # of the rows of a text agree, and they are two or more


class RepeatedTexts(Check):
    """Duplicates, texts that two parts share, and texts with several labels.

    Args:
        names: The labels of a sample; None where texts have none.
    """

    def __init__(self, names: Names | None = None) -> None:
        self.names = names
        self.contents, self.answers = array("Q"), array("Q")
        self.parts, self.numbers = bytearray(), array("Q")

    def see(self, row: Specimen) -> None:
        labels = sorted(set(self.names(row.sample))) if self.names else []
        self.contents.append(row.content)
        self.answers.append(hashed("\n".join(labels)) if labels else 0)
        self.parts.append(SPLITS.index(row.part))
        self.numbers.append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        yield from self._conflicts(where)
        yield from self._shared(where)
        yield from self._duplicates(where)

    @cached_property
    def texts(self) -> list[list[int]]:
        """For each text that comes again, its places in what was seen, in order."""
        contents = np.array(self.contents)
        order = np.argsort(contents, kind="stable")
        starts = np.flatnonzero(np.diff(contents[order], prepend=~contents[order[:1]]))
        sizes = np.diff(starts, append=len(order))
        again = zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True)
        found = [order[start : start + size].tolist() for start, size in again]
        return sorted(found)  # by the row that comes first

    def _conflicting(self, places: list[int]) -> bool:
        return len({self.answers[place] for place in places}) > 1

    def _conflicts(self, where: Where) -> Iterator[Finding]:
        texts = [places for places in self.texts if self._conflicting(places)]
        if texts:
            rows = [place for places in texts for place in places]
            yield Finding(
                kind="conflicting labels",
                severity="warning",
                what=f"{counted(len(texts), 'text')} in {counted(len(rows), 'row')} with "
                f"different labels",
                advice="decide which label is right; --fix keeps a clear majority, else none",
                count=len(rows),
                rows=self._named(rows, where),
            )

    def _shared(self, where: Where) -> Iterator[Finding]:
        """Rows that were to be held out, and are also there to learn from."""
        for part, other in (("test", "train"), ("valid", "train"), ("test", "valid")):
            own, others = SPLITS.index(part), SPLITS.index(other)
            rows = [
                place
                for places in self.texts
                if others in (found := {self.parts[place] for place in places}) and own in found
                for place in places
                if self.parts[place] == own
            ]
            if rows:
                share = len(rows) / self.parts.count(own)
                yield Finding(
                    kind="shared by parts",
                    severity="error" if share >= MANY else "warning",
                    what=f"{counted(len(rows), 'row')} of {part} ({share:.1%}) "
                    f"{'is' if len(rows) == 1 else 'are'} also in {other}",
                    advice=f"scores on {part} flatter the model; --fix takes them out of {other}",
                    count=len(rows),
                    rows=self._named(sorted(rows), where),
                )

    def _duplicates(self, where: Where) -> Iterator[Finding]:
        """Rows that say again what another of their part has said, label and all."""
        rows: list[int] = []
        for places in self.texts:
            if not self._conflicting(places):
                met: set[int] = set()
                for place in places:
                    if self.parts[place] in met:
                        rows.append(place)
                    met.add(self.parts[place])
        if rows:
            share = len(rows) / len(self.parts)
            yield Finding(
                kind="duplicate rows",
                severity="warning" if share >= MANY and self.names else "note",
                what=f"{counted(len(rows), 'row')} ({share:.1%}) that only "
                f"{'repeats' if len(rows) == 1 else 'repeat'} what was there before",
                advice="they count more than once; drop them with --fix",
                count=len(rows),
                rows=self._named(sorted(rows), where),
            )

    def to_drop(self) -> Mapping[int, str]:
        drop: dict[int, str] = {}
        for places in self.texts:
            answer = self._settled(places)
            right = [place for place in places if self.answers[place] == answer]
            kept = max(right, key=lambda place: (self.parts[place], -place), default=None)
            for place in places:
                if kept is None or self.answers[place] != answer:
                    why = "conflicting label"
                elif self.parts[place] != self.parts[kept]:
                    why = f"also in {SPLITS[self.parts[kept]]}"
                else:
                    why = "duplicate"
                if place != kept:
                    drop[self.numbers[place]] = why
        return drop

    def _settled(self, places: list[int]) -> int | None:
        """The answer that is clear: the only one, or that of most rows."""
        (answer, most), *others = Counter(self.answers[place] for place in places).most_common()
        return answer if not others or most >= CLEAR * len(places) else None

    def _named(self, places: list[int], where: Where) -> tuple[str, ...]:
        return named((self.numbers[place] for place in places), where)


class SharedGroups(Check):
    """Groups, such as films or authors, with rows in a part to learn from and in one held out."""

    def __init__(self) -> None:
        self.groups: defaultdict[int, set[str]] = defaultdict(set)
        self.held_out: list[tuple[int, int]] = []

    def see(self, row: Specimen) -> None:
        if row.group:
            group = hashed(row.group)
            self.groups[group].add(row.part)
            if row.part != "train":
                self.held_out.append((row.number, group))

    def findings(self, where: Where) -> Iterator[Finding]:
        rows = [number for number, group in self.held_out if "train" in self.groups[group]]
        groups = sum("train" in parts and len(parts) > 1 for parts in self.groups.values())
        if rows:
            yield Finding(
                kind="shared groups",
                severity="warning",
                what=f"{counted(groups, 'group')} in train and in what is held out, there with "
                f"{counted(len(rows), 'row')}",
                advice="what belongs together should stay in one part; split by the group",
                count=len(rows),
                rows=named(rows, where),
            )
