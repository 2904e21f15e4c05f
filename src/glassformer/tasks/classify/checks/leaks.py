"""Leaks: what gives the label away, so that a model learns a shortcut instead of the task.

They are searched for in a sample of the rows: those with the smallest hashes of their content,
which is as good as random, independent of the order of rows, and of fixed size.
"""

import heapq
from collections.abc import Iterator

from glassformer.data.doctor.check import Check, Specimen
from glassformer.data.doctor.finding import Finding, Where
from glassformer.tasks.classify.checks.columns import leaking_columns
from glassformer.tasks.classify.checks.labels import Names
from glassformer.tasks.classify.checks.words import Sampled, leaking_words, named_labels

MOST = 5_000  # rows
HEAD, TAIL = 1000, 500  # characters kept of a longer text
LONGEST_VALUE = 80  # characters kept of another column
COLUMNS = 50  # other columns kept


class Leaks(Check):
    """Words and columns that give the label away."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._heap: list[tuple[int, int, Sampled]] = []  # the largest hash on top

    def see(self, row: Specimen) -> None:
        rank = (-row.content, -row.number)
        if len(self._heap) < MOST:
            heapq.heappush(self._heap, (*rank, self._kept(row)))
        elif rank > self._heap[0][:2]:
            heapq.heapreplace(self._heap, (*rank, self._kept(row)))

    def findings(self, where: Where) -> Iterator[Finding]:
        rows = sorted((row for _, _, row in self._heap), key=lambda row: row.number)
        named = list(named_labels(rows, where))
        yield from named or leaking_words(rows, where)
        yield from leaking_columns(rows, where)

    def _kept(self, row: Specimen) -> Sampled:
        text = row.sample.get("text", "")  # a recording has none
        if len(text) > HEAD + TAIL:
            text = f"{text[:HEAD]} {text[-TAIL:]}"
        others = {name: row.others[name][:LONGEST_VALUE] for name in list(row.others)[:COLUMNS]}
        return Sampled(row.number, text, frozenset(self.names(row.sample)), others)
