"""Labels: how many rows each has, how they are spelt, and in which order they come."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from glassformer.data.doctor.check import Check, Figures, Specimen
from glassformer.data.doctor.finding import Finding, Where, counted, named
from glassformer.data.rows import listed
from glassformer.data.samples import Sample
from glassformer.data.splits import content_key

NEARLY_ALL = 0.95  # of the rows: a model that always predicts this label looks good
ENOUGH = 20  # rows; fewer may be sorted by chance

Names = Callable[[Sample], list[str]]  # the labels of a sample


class LabelCounts(Check):
    """Labels that are too few, too many, too rare, unbalanced, or spelt in two ways.

    Args:
        rarest: Labels with fewer rows are refused in training.
        most: The maximum number of labels.
    """

    needs_all = True

    def __init__(self, names: Names, *, rarest: int, most: int) -> None:
        self.names, self.rarest, self.most = names, rarest, most
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

    def findings(self, where: Where) -> Iterator[Finding]:
        if not self.rows:
            return
        if self.excess:
            yield Finding(
                kind="too many labels",
                severity="error",
                what=f"more than {self.most:,} different labels",
                advice="they look like texts; name the label column with --columns label=...",
                count=len(self.excess),
                rows=named(self.excess, where),
            )
            return
        if len(self.counts) < 2:
            yield Finding(
                kind="one label",
                severity="error",
                what=f"only one label, {listed(self.counts)!r}" if self.counts else "no label",
                advice="there is nothing to learn; name the column with --columns label=...",
                count=self.rows,
                rows=named(self.first.values(), where),
            )
        else:
            yield from self._rare(where)
            yield from self._unlearned(where)
            yield from self._spellings(where)
            yield from self._unbalanced(where)

    def _rare(self, where: Where) -> Iterator[Finding]:
        rare = [name for name, count in self.counts.items() if count < self.rarest]
        if rare:
            yield Finding(
                kind="rare labels",
                severity="error",
                what=f"{counted(len(rare), 'label')} with fewer than {self.rarest} rows "
                f"({listed(rare)})",
                advice="they cannot be both trained on and scored: add rows, or merge labels",
                count=sum(self.counts[name] for name in rare),
                rows=named((self.first[name] for name in rare), where),
            )

    def _unlearned(self, where: Where) -> Iterator[Finding]:
        missing = [name for name in self.counts if name not in self.learned]
        if missing and self.learned:
            yield Finding(
                kind="labels not in train",
                severity="warning",
                what=f"{counted(len(missing), 'label')} only in validation or test rows "
                f"({listed(missing)})",
                advice="the model cannot learn them; add such rows to train",
                count=sum(self.counts[name] for name in missing),
                rows=named((self.first[name] for name in missing), where),
            )

    def _spellings(self, where: Where) -> Iterator[Finding]:
        spellings: defaultdict[str, list[str]] = defaultdict(list)
        for name, _ in self.counts.most_common():
            spellings[content_key(name)].append(name)
        others = [name for names in spellings.values() for name in names[1:]]
        if others:
            pairs = [f"{names[0]!r} and {names[1]!r}" for names in spellings.values() if names[1:]]
            yield Finding(
                kind="label spellings",
                severity="warning",
                what=f"labels that differ only in case or white space ({listed(pairs)})",
                advice="they count as different labels; use one spelling",
                count=sum(self.counts[name] for name in others),
                rows=named((self.first[name] for name in others), where),
            )

    def _unbalanced(self, where: Where) -> Iterator[Finding]:
        (name, count), *others = self.counts.most_common()
        if self.several == 0 and count >= NEARLY_ALL * self.rows:
            yield Finding(
                kind="unbalanced labels",
                severity="warning",
                what=f"{count / self.rows:.1%} of the rows have the label {name[:40]!r}",
                advice="look at macro F1 rather than accuracy; --set task.class_weights=true helps",
                count=count,
                rows=named((self.first[other] for other, _ in others), where),
            )

    def figures(self) -> Figures:
        return {"labels": dict(self.counts.most_common())}


class LabelOrder(Check):
    """Rows sorted by label."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.labels: set[str] = set()
        self.starts: list[int] = []
        self.rows, self.last = 0, ""

    def see(self, row: Specimen) -> None:
        if row.split != "train" or len(self.starts) > len(self.labels):
            return
        found = "\n".join(self.names(row.sample))
        self.rows += 1
        if found != self.last or not self.starts:
            self.starts.append(row.number)
        self.labels.add(found)
        self.last = found

    def findings(self, where: Where) -> Iterator[Finding]:
        sorted_ = len(self.starts) == len(self.labels) > 1
        if sorted_ and self.rows >= max(ENOUGH, 4 * len(self.labels)):
            yield Finding(
                kind="sorted by label",
                severity="note",
                what=f"{self.rows:,} rows are sorted by their {len(self.labels):,} labels",
                advice="training shuffles them; do not cut the file in two to split it",
                count=len(self.starts),
                rows=named(self.starts, where),
            )
