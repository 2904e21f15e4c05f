"""Leaks: what gives the label away, so that a model learns a trick and not the task."""

from collections.abc import Iterator

from glassformer.data.doctor.check import Check, Names, Specimen
from glassformer.data.doctor.finding import Finding, Where
from glassformer.data.doctor.leaking_columns import leaking_columns
from glassformer.data.doctor.leaking_words import leaking_words, named_labels
from glassformer.data.doctor.sampled import RowSample


class Leaks(Check):
    """Words and columns that tell the label."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.sample = RowSample()

    def see(self, row: Specimen) -> None:
        self.sample.show(row, frozenset(self.names(row.sample)))

    def findings(self, where: Where) -> Iterator[Finding]:
        rows = self.sample.rows()
        named = list(named_labels(rows, where))
        yield from named or leaking_words(rows, where)
        yield from leaking_columns(rows, where)
