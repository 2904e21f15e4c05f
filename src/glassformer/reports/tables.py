"""Tables shared by the reports of several jobs, and text for their cells."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glassformer.metrics.paired import Comparison
from glassformer.reports.record import BY_CLASS, Sections, Table
from glassformer.reports.wording import named, p_value, written
from glassformer.wording import natural_key

SHOWN = 12  # rows of a table that shows some
EXCERPT = 240  # characters of a text shown


def comparison_table(comparisons: Mapping[str, Comparison], first: str, second: str) -> Table:
    """The comparison of two systems, score by score."""
    return Table(
        title=f"{first} against {second}",
        header=("score", "difference", "from", "to", "p", "better", "worse", "same"),
        rows=[
            (
                named(name),
                written(name, found.difference.value, "+"),
                written(name, found.difference.low, "+"),
                written(name, found.difference.high, "+"),
                p_value(found.p_value),
                found.wins,
                found.losses,
                found.ties,
            )
            for name, found in comparisons.items()
        ],
        note=" ".join(
            [
                "p: the probability of a difference at least this large by chance alone.",
                *dict.fromkeys(f"{one.reason}." for one in comparisons.values() if one.reason),
            ]
        ),
    )


def in_natural_order(sections: Sections) -> Sections:
    """Sort the classes of the confusion matrix and of the table by class: 0, 1, 2, 10."""
    tables, found = list(sections.tables), sections.heat_map
    for place, table in enumerate(tables):
        if table.title == BY_CLASS:
            rows = sorted(table.rows, key=lambda row: natural_key(str(row[0])))
            tables[place] = replace(table, rows=rows)
    if found is None:
        return replace(sections, tables=tables)
    order = sorted(range(len(found.names)), key=lambda n: natural_key(found.names[n]))

    def ordered(counts: Sequence[Sequence[int]]) -> list[list[int]]:
        return [[counts[row][column] for column in order] for row in order] if counts else []

    names = [found.names[n] for n in order]
    counts, low, high = map(ordered, (found.counts, found.low, found.high))
    heat_map = replace(found, names=names, counts=counts, low=low, high=high)
    return replace(sections, tables=tables, heat_map=heat_map)


def excerpt(text: str) -> str:
    """The start of a text."""
    text = " ".join(text[: 4 * EXCERPT].split())
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1].rstrip() + "…"


def evenly(rows: int) -> list[int]:
    """Some row numbers, spread evenly from the first to the last.

    >>> evenly(3), evenly(100)[:4]
    ([0, 1, 2], [0, 9, 18, 27])
    """
    return np.linspace(0, rows - 1, min(SHOWN, rows)).round().astype(int).tolist()
