"""Tables shared by the reports of several jobs, and text for their cells."""

from collections.abc import Mapping

import numpy as np

from glassformer.metrics.paired import Comparison
from glassformer.reports.record import Table
from glassformer.reports.wording import named, p_value, written

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
        note="p: the probability of a difference at least this large by chance alone.",
    )


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
