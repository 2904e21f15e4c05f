"""The default checks, for samples of any kind.

A sample is identified by a hash of its content, which its schema defines. A cleaned copy keeps a
sample once, in test before valid before train.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice

import numpy as np

from glassformer.data.doctor.check import Answer, Check, Finding, Specimen
from glassformer.data.rows import listed
from glassformer.data.samples import SPLITS
from glassformer.data.splits import hashed
from glassformer.wording import counted

SENTENCE = 4  # words on average, in a column of texts
SOME_COLUMNS, SOME_ROWS = 50, 10_000  # in which unread texts are looked for
MANY = 0.01  # of the rows; more duplicates are no accident
CLEAR = 2 / 3  # of the rows with the same content must agree

Renamed = Callable[[], Mapping[str, str]]


def default_checks(
    answer: Answer | None = None, *, one_answer: bool = False, renamed: Renamed | None = None
) -> list[Check]:
    """For every job.

    Args:
        answer, one_answer, renamed: As for `RepeatedSamples`.
    """
    repeated = RepeatedSamples(answer, one_answer=one_answer, renamed=renamed)
    return [EmptyRows(), repeated, SharedGroups(), UnreadTexts()]


class EmptyRows(Check):
    """Rows without a required value, or with one that cannot be used."""

    def __init__(self) -> None:
        self.faults: defaultdict[str, list[int]] = defaultdict(list)

    def see(self, row: Specimen) -> None:
        """Complete rows are fine."""

    def see_incomplete(self, row: Specimen, fault: str) -> None:
        self.faults[fault].append(row.number)

    def findings(self) -> Iterator[Finding]:
        for fault, numbers in self.faults.items():
            what = f"{counted(len(numbers), 'row')} with {fault}"
            advice = "training skips such rows; correct them, or drop them with --fix"
            yield Finding("empty rows", "warning", what, advice, numbers)

    def to_drop(self) -> Mapping[int, str]:
        return {number: fault for fault, rows in self.faults.items() for number in rows}


class RepeatedSamples(Check):
    """Duplicates, samples shared by two splits, and samples with conflicting labels.

    Args:
        answer: The expected answer for a sample; samples with different answers are not duplicates.
        one_answer: Whether there is one right answer, a label, so that two answers conflict. A
            cleaned copy then keeps a clear majority.
        renamed: Once all rows were seen: answers that turned out to be others, and which.
    """

    def __init__(
        self,
        answer: Answer | None = None,
        *,
        one_answer: bool = False,
        renamed: Renamed | None = None,
    ) -> None:
        self.answer, self.one_answer, self.renamed = answer, one_answer, renamed
        self.contents, self.answers = array("Q"), array("Q")
        self.splits, self.numbers = bytearray(), array("Q")

    def see(self, row: Specimen) -> None:
        answer = self.answer(row.sample) if self.answer else ""
        self.contents.append(row.content)
        self.answers.append(hashed(answer) if answer else 0)
        self.splits.append(SPLITS.index(row.split))
        self.numbers.append(row.number)

    def findings(self) -> Iterator[Finding]:
        yield from self._conflicts()
        yield from self._shared()
        yield from self._duplicates()

    @cached_property
    def repeated(self) -> list[list[int]]:
        """For each repeated content, the positions where it occurs, in order."""
        renamed = self.renamed() if self.renamed else {}
        if renamed:
            other = {hashed(old): hashed(new) for old, new in renamed.items()}
            self.answers = array("Q", (other.get(answer, answer) for answer in self.answers))
        contents = np.array(self.contents)
        order = np.argsort(contents, kind="stable")
        starts = np.flatnonzero(np.diff(contents[order], prepend=~contents[order[:1]]))
        sizes = np.diff(starts, append=len(order))
        again = zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True)
        found = [order[start : start + size].tolist() for start, size in again]
        return sorted(found)  # by the row that comes first

    def _conflicting(self, places: list[int]) -> bool:
        return self.one_answer and len({self.answers[place] for place in places}) > 1

    def _conflicts(self) -> Iterator[Finding]:
        inputs = [places for places in self.repeated if self._conflicting(places)]
        if inputs:
            rows = [place for places in inputs for place in places]
            what = (
                f"{counted(len(inputs), 'input')} in {counted(len(rows), 'row')} with "
                f"different labels"
            )
            advice = "decide which label is right; --fix keeps a clear majority, or drops all"
            yield Finding("conflicting labels", "warning", what, advice, self._numbers(rows))

    def _shared(self) -> Iterator[Finding]:
        """Held-out rows that are also in the training data."""
        for split, other in (("test", "train"), ("valid", "train"), ("test", "valid")):
            own, others = SPLITS.index(split), SPLITS.index(other)
            rows = sorted(
                place
                for places in self.repeated
                if others in (found := {self.splits[place] for place in places}) and own in found
                for place in places
                if self.splits[place] == own
            )
            if rows:
                share = len(rows) / self.splits.count(own)
                what = (
                    f"{counted(len(rows), 'row')} of {split} ({share:.1%}) "
                    f"{'is' if len(rows) == 1 else 'are'} also in {other}"
                )
                advice = f"scores on {split} are optimistic; --fix removes them from {other}"
                severity = "error" if share >= MANY else "warning"
                yield Finding("shared by splits", severity, what, advice, self._numbers(rows))

    def _duplicates(self) -> Iterator[Finding]:
        """Rows that repeat another row of their split, including the answer."""
        rows: list[int] = []
        for places in self.repeated:
            if not self._conflicting(places):
                met: set[tuple[int, int]] = set()
                for place in places:
                    if (key := (self.splits[place], self.answers[place])) in met:
                        rows.append(place)
                    met.add(key)
        if rows:
            share = len(rows) / len(self.splits)
            what = (
                f"{counted(len(rows), 'row')} ({share:.1%}) that only "
                f"{'repeats' if len(rows) == 1 else 'repeat'} an earlier row"
            )
            advice = "they count more than once; --fix drops them"
            severity = "warning" if share >= MANY and self.one_answer else "note"
            yield Finding("duplicate rows", severity, what, advice, self._numbers(sorted(rows)))

    def to_drop(self) -> Mapping[int, str]:
        drop: dict[int, str] = {}
        for places in self.repeated:
            if self.one_answer:
                right = self._majority(places)
                drop |= {
                    self.numbers[place]: "conflicting label"
                    for place in {*places}.difference(right)
                }
                places = right
            last = max((self.splits[place] for place in places), default=0)
            kept: set[int] = set()
            for place in places:
                if self.splits[place] != last:
                    drop[self.numbers[place]] = f"also in {SPLITS[last]}"
                elif self.answers[place] in kept:
                    drop[self.numbers[place]] = "duplicate"
                else:
                    kept.add(self.answers[place])
        return drop

    def _majority(self, places: list[int]) -> list[int]:
        """The rows with the clear majority answer; empty if there is none."""
        (answer, most), *others = Counter(self.answers[place] for place in places).most_common()
        if others and most < CLEAR * len(places):
            return []
        return [place for place in places if self.answers[place] == answer]

    def _numbers(self, places: list[int]) -> list[int]:
        return [self.numbers[place] for place in places]


class SharedGroups(Check):
    """Groups, such as films or authors, with rows in train and in a held-out split."""

    def __init__(self) -> None:
        self.groups: defaultdict[int, set[str]] = defaultdict(set)
        self.held_out: list[tuple[int, int]] = []

    def see(self, row: Specimen) -> None:
        if row.group:
            group = hashed(row.group)
            self.groups[group].add(row.split)
            if row.split != "train":
                self.held_out.append((row.number, group))

    def findings(self) -> Iterator[Finding]:
        rows = [number for number, group in self.held_out if "train" in self.groups[group]]
        groups = sum("train" in splits and len(splits) > 1 for splits in self.groups.values())
        if rows:
            what = (
                f"{counted(groups, 'group')} both in train and in held-out splits, with "
                f"{counted(len(rows), 'held-out row')}"
            )
            advice = "keep each group in one split; split the data by group"
            yield Finding("shared groups", "warning", what, advice, rows)


class UnreadTexts(Check):
    """Columns of texts that have no role and are longer than what is read, such as a context."""

    def __init__(self) -> None:
        self.rows = 0
        self.words: Counter[str] = Counter()  # by column
        self.sizes: Counter[str] = Counter()  # characters, by column
        self.read: Counter[str] = Counter()  # characters, by role

    def see(self, row: Specimen) -> None:
        if self.rows == SOME_ROWS or not row.others:
            return
        self.rows += 1
        for role, value in row.sample.items():
            if isinstance(value, str) and role not in ("where", "group"):
                self.read[role] += len(value)
        for column, text in islice(row.others.items(), SOME_COLUMNS):
            self.words[column] += len(text.split())
            self.sizes[column] += len(text)

    def findings(self) -> Iterator[Finding]:
        longest = max(self.read.values(), default=0)
        found = [
            column
            for column, size in self.sizes.items()
            if size > longest and self.words[column] >= SENTENCE * self.rows
        ]
        if found:
            texts = "column" if len(found) == 1 else "columns"
            what = f"longer texts than those that are read stand in the {texts} {listed(found)}"
            advice = (
                "they are not read: choose them with --columns, or join what belongs together, "
                "such as a context and its question, in one column"
            )
            yield Finding("unread texts", "warning", what, advice, total=self.rows)
