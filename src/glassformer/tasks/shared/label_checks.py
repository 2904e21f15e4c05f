"""Labels: how many rows each has, and how they are spelt."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from glassformer.data.doctor.check import Check, Figures, Finding, Specimen
from glassformer.data.rows import listed
from glassformer.data.samples import Sample
from glassformer.data.splits import content_key
from glassformer.wording import counted

NEARLY_ALL = 0.95  # of the rows: a model that always predicts this label looks good

Names = Callable[[Sample], list[str]]  # the labels of a sample


class LabelCounts(Check):
    """Labels that are too few, too many, too rare, unbalanced, or spelt in two ways.

    Args:
        rarest: Labels with fewer rows are refused in training.
        most: The maximum number of labels.
        separator: What separates several labels in one field.
    """

    needs_all = True

    def __init__(
        self, names: Names, *, rarest: int, most: int, separator: str | None = None
    ) -> None:
        self.names, self.rarest, self.most, self.separator = names, rarest, most, separator
        self.counts: Counter[str] = Counter()
        self.learned: set[str] = set()
        self.first: dict[str, int] = {}
        self.rows = self.several = 0
        self.excess: list[int] = []  # rows with labels beyond the maximum

    def see(self, row: Specimen) -> None:
        found = dict.fromkeys(self.names(row.sample))
        self.rows += 1
        self.several += len(found) != 1
        for name in found:
            if name not in self.counts and len(self.counts) == self.most:
                self.excess.append(row.number)
                continue
            self.counts[name] += 1
            self.first.setdefault(name, row.number)
            if row.split == "train":
                self.learned.add(name)

    def findings(self) -> Iterator[Finding]:
        if not self.rows:
            return
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
        return {"labels": dict(self.counts.most_common())}
