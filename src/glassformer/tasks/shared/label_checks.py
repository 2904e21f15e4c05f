"""Labels: how many rows each has, and how they are spelt."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from glassformer.data.doctor.check import Check, Figures, Finding, Specimen
from glassformer.data.rows import listed
from glassformer.data.samples import Sample
from glassformer.data.splits import content_key
from glassformer.tasks.shared.labels import (
    MOST_FIELDS,
    names_of,
    no_regression,
    quantities,
    separated_line,
    separator_of,
)
from glassformer.wording import counted

NEARLY_ALL = 0.95  # of the rows: a model that always predicts this label looks good

Names = Callable[[Sample], list[str]]  # the labels of a sample


def answer_of(names: Iterable[str]) -> str:
    """Labels as one answer, whatever their order; spellings of a label are no conflict."""
    return "\n".join(sorted({content_key(name) for name in names}))


@dataclass(slots=True)
class Field:
    """A label, or several, as they are written: the first row, how many rows, and whether some of
    them are for training.
    """

    first: int
    rows: int = 0
    learned: bool = False


class LabelCounts(Check):
    """Labels that are too few, too many, too rare, amounts, unbalanced, or spelt in two ways.

    Args:
        rarest: Labels with fewer rows are refused in training.
        most: The maximum number of labels.
        separator: What separates several labels in one field.
        several: Whether a field has several; None searches for a separator, as training does.
    """

    needs_all = True

    def __init__(
        self,
        names: Names,
        *,
        rarest: int,
        most: int,
        separator: str | None = None,
        several: bool | None = None,
    ) -> None:
        self.names, self.rarest, self.most, self.separator = names, rarest, most, separator
        self.fields: dict[str, Field] | None = None if separator or several is False else {}
        self.counts: Counter[str] = Counter()
        self.learned: set[str] = set()
        self.first: dict[str, int] = {}
        self.rows = self.several = 0
        self.excess: list[int] = []  # rows with labels beyond the maximum

    def see(self, row: Specimen) -> None:
        found = dict.fromkeys(self.names(row.sample))
        self.rows += 1
        if self.fields is not None:
            self._note_field(row)
        self.several += len(found) != 1
        for name in found:
            if name not in self.counts and len(self.counts) == self.most:
                self.excess.append(row.number)
                continue
            self.counts[name] += 1
            self.first.setdefault(name, row.number)
            if row.split == "train":
                self.learned.add(name)

    def _note_field(self, row: Specimen) -> None:
        """Keep how often each field occurs, in which labels may be found."""
        value = row.sample["label"]
        if not isinstance(value, str) or len(self.fields or ()) > MOST_FIELDS:
            self.fields = None  # lists, or texts
            return
        assert self.fields is not None
        field = self.fields.setdefault(value.strip(), Field(row.number))
        field.rows += 1
        field.learned = field.learned or row.split == "train"

    @cached_property
    def separated(self) -> Finding | None:
        """The finding about a separator that was found; labels are then counted by it."""
        fields = {name: field.rows for name, field in (self.fields or {}).items()}
        separator = separator_of(fields)
        if separator is None or self.fields is None:
            return None
        self.separator = separator
        self.counts, self.learned, self.first = Counter(), set(), {}
        self.excess, self.several = [], 0
        for value, field in self.fields.items():
            names = dict.fromkeys(names_of(value, separator))
            self.several += field.rows * (len(names) != 1)
            for name in names:
                self.counts[name] += field.rows
                self.first[name] = min(field.first, self.first.get(name, field.first))
                self.learned |= {name} if field.learned else set()
        what, _, advice = separated_line(separator, fields).partition("; ")
        rows = [field.first for value, field in self.fields.items() if separator in value]
        return Finding("several labels", "note", what, advice, sorted(rows), total=self.several)

    def separate(self, names: Iterable[str]) -> list[str]:
        """The labels in these fields, by a separator that was found."""
        if self.separated is None:
            return [*names]
        return [name for field in names for name in names_of(field, self.separator)]

    def renamed(self) -> dict[str, str]:
        """The answers of fields that have several labels by a separator that was found."""
        if self.separated is None:
            return {}
        fields = self.fields or {}
        found = {answer_of([field]): answer_of(self.separate([field])) for field in fields}
        return {old: new for old, new in found.items() if old != new}

    def findings(self) -> Iterator[Finding]:
        if not self.rows:
            return
        if self.separated is not None:
            yield self.separated
        amounts = quantities(self.counts)
        if amounts is not None and (self.excess or self._rare_names()):
            what, _, advice = no_regression(amounts).partition("; ")
            yield Finding("amounts", "error", what, advice, [*self.first.values()], total=self.rows)
            return
        if amounts is not None:
            what, _, advice = no_regression(amounts).partition("; ")
            yield Finding("amounts", "warning", what, advice, total=self.rows)
        if self.excess:
            what = f"more than {self.most:,} different labels"
            advice = "they look like texts; name the label column with --columns label=..."
            yield Finding("too many labels", "error", what, advice, self.excess)
            return
        if len(self.counts) < 2:
            what = f"only one label, {listed(self.counts)!r}" if self.counts else "no label"
            advice = "there is nothing to learn; name the column with --columns label=..."
            yield Finding(
                "one label", "error", what, advice, [*self.first.values()], total=self.rows
            )
        else:
            yield from self._rare()
            yield from self._unlearned()
            yield from self._spellings()
            yield from self._unbalanced()

    def _rare_names(self) -> list[str]:
        return [name for name, count in self.counts.items() if count < self.rarest]

    def _rare(self) -> Iterator[Finding]:
        spelt = {name for names in self._by_spelling().values() for name in names[1:]}
        rare = [name for name in self._rare_names() if name not in spelt]  # told by themselves
        if rare:
            what = (
                f"{counted(len(rare), 'label')} with fewer than {self.rarest} rows ({listed(rare)})"
            )
            advice = "too few to be both trained on and scored: add rows, or merge labels"
            yield self._about(rare, "rare labels", "error", what, advice)

    def _unlearned(self) -> Iterator[Finding]:
        missing = [name for name in self.counts if name not in self.learned]
        if missing and self.learned:
            what = (
                f"{counted(len(missing), 'label')} only in validation or test rows "
                f"({listed(missing)})"
            )
            advice = "the model cannot learn them; add such rows to train"
            yield self._about(missing, "labels not in train", "warning", what, advice)

    def _by_spelling(self) -> dict[str, list[str]]:
        """The spellings of each label, the most frequent first."""
        spellings: defaultdict[str, list[str]] = defaultdict(list)
        for name, _ in self.counts.most_common():
            spellings[content_key(name)].append(name)
        return spellings

    def corrections(self) -> Mapping[str, Callable[[Any], Any]]:
        _ = self.separated
        best = {other: names[0] for names in self._by_spelling().values() for other in names[1:]}

        def respelt(value: Any) -> Any:
            """The label, or each of several, in its most frequent spelling."""
            if isinstance(value, list):
                return [respelt(item) for item in value]
            if self.separator and self.separator in value:
                return self.separator.join(map(respelt, value.split(self.separator)))
            return value.replace(value.strip(), best.get(value.strip(), value.strip()))

        return {"label": respelt} if best else {}

    def _spellings(self) -> Iterator[Finding]:
        spellings = self._by_spelling()
        others = [name for names in spellings.values() for name in names[1:]]
        if others:
            pairs = [f"{names[0]!r} and {names[1]!r}" for names in spellings.values() if names[1:]]
            what = f"labels that differ only in case or white space ({listed(pairs)})"
            advice = "they count as different labels; --fix takes the most frequent spelling"
            refused = not {*others}.isdisjoint(self._rare_names())
            severity = "error" if refused else "warning"
            yield self._about(others, "label spellings", severity, what, advice)

    def _unbalanced(self) -> Iterator[Finding]:
        (name, count), *others = self.counts.most_common()
        if self.several == 0 and count >= NEARLY_ALL * self.rows:
            what = f"{count / self.rows:.1%} of the rows have the label {name[:40]!r}"
            advice = "look at macro F1 rather than accuracy; --set task.class_weights=true helps"
            numbers = [self.first[other] for other, _ in others]
            yield Finding("unbalanced labels", "warning", what, advice, numbers, total=count)

    def _about(self, names: list[str], kind: str, severity: str, what: str, advice: str) -> Finding:
        """A finding about some labels: the first row of each, and the number of all."""
        numbers, total = [self.first[name] for name in names], sum(self.counts[n] for n in names)
        return Finding(kind, severity, what, advice, numbers, total=total)

    def figures(self) -> Figures:
        _ = self.separated
        return {"labels": dict(self.counts.most_common())}
