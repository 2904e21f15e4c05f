"""Leaks: what gives the label away, so that a model learns a shortcut instead of the task.

They are searched for in a sample of the rows.
"""

from collections.abc import Iterator
from dataclasses import replace

from glassformer.data.doctor.check import Check, Finding, HashSample, Specimen
from glassformer.tasks.classify.checks.columns import leaking_columns
from glassformer.tasks.classify.checks.words import Sampled, leaking_words, named_labels
from glassformer.tasks.shared.label_checks import LabelCounts, Names

MOST = 5_000  # rows
HEAD, TAIL = 1000, 500  # characters kept of a longer text
LONGEST_VALUE = 80  # characters kept of another column
COLUMNS = 50  # other columns kept


class Leaks(Check):
    """Words and columns that give the label away.

    Args:
        names: The labels of a sample.
        labels: Knows which of them are several, once all rows were seen.
    """

    def __init__(self, names: Names, labels: LabelCounts) -> None:
        self.names, self.labels = names, labels
        self.sample = HashSample[Sampled](MOST)

    def see(self, row: Specimen) -> None:
        self.sample.see(row.number, row.content, lambda: self._kept(row))

    def findings(self) -> Iterator[Finding]:
        rows = [
            replace(kept, labels=frozenset(self.labels.separate(kept.labels)))
            for _, kept in self.sample.rows()
        ]
        named = list(named_labels(rows))
        yield from named or leaking_words(rows)
        yield from leaking_columns(rows)

    def _kept(self, row: Specimen) -> Sampled:
        text = row.sample.get("text", "")  # a recording has none
        if len(text) > HEAD + TAIL:
            text = f"{text[:HEAD]} {text[-TAIL:]}"
        others = {name: row.others[name][:LONGEST_VALUE] for name in list(row.others)[:COLUMNS]}
        return Sampled(row.number, text, frozenset(self.names(row.sample)), others)
