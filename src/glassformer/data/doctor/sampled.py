"""A sample of the rows, for what needs more of a row than a hash.

The rows whose texts have the smallest hashes: as good as a draw, the same in whatever order rows
come, and no larger however many pass.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from glassformer.data.doctor.check import Specimen

MOST = 5_000  # rows
HEAD, TAIL = 1000, 500  # characters that are kept of a longer text
LONGEST_VALUE = 80  # characters that are kept of another column
COLUMNS = 50  # other columns that are kept


@dataclass(frozen=True, slots=True)
class Sampled:
    """What is kept of a row."""

    number: int
    text: str
    labels: frozenset[str]
    others: Mapping[str, str]


class RowSample:
    """At most MOST of the rows it is shown."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Sampled]] = []  # the largest hash on top

    def show(self, row: Specimen, labels: frozenset[str]) -> None:
        """Keep the row, if its hash is among the smallest."""
        rank = (-row.content, -row.number)
        if len(self._heap) < MOST:
            heapq.heappush(self._heap, (*rank, _kept(row, labels)))
        elif rank > self._heap[0][:2]:
            heapq.heapreplace(self._heap, (*rank, _kept(row, labels)))

    def rows(self) -> list[Sampled]:
        """What was kept, in the order of the rows."""
        return sorted((row for _, _, row in self._heap), key=lambda row: row.number)


def _kept(row: Specimen, labels: frozenset[str]) -> Sampled:
    text = row.text
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]} {text[-TAIL:]}"
    others = {name: row.others[name][:LONGEST_VALUE] for name in list(row.others)[:COLUMNS]}
    return Sampled(row.number, text, labels, others)
