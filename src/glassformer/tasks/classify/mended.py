"""Which rows one part of a model mends for another."""

from collections.abc import Mapping, Sequence

import numpy as np

from glassformer.metrics.calibration import Labels
from glassformer.metrics.classification import right_rows
from glassformer.reports.record import Table
from glassformer.reports.tables import excerpt
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_sections import class_names

SHOWN = 10  # rows, half of them for each part


def mended_tables(
    labels: Labels,
    parts: Mapping[str, ClassAnswers],
    together: ClassAnswers,
    classes: Sequence[str],
    texts: Sequence[str],
) -> list[Table]:
    """How often two parts are right alone and together, and rows that one mends for the other.

    Args:
        parts: The answers that each of the two gives alone, by its name.
    """
    (first, one), (second, two) = parts.items()
    given = [x.predictions() for x in (one, two, together)]
    right = [right_rows(labels, x) for x in given]
    cases = {
        "both right": right[0] & right[1],
        f"only {first} right": right[0] & ~right[1],
        f"only {second} right": ~right[0] & right[1],
        "both wrong": ~right[0] & ~right[1],
    }
    counts = [(name, int(rows.sum()), int((rows & right[2]).sum())) for name, rows in cases.items()]
    only = [np.flatnonzero(rows & right[2]) for rows in list(cases.values())[1:3]]
    mended = [int(n) for rows in only for n in rows[: SHOWN // 2]]
    return [
        Table(
            title="What the parts mend for each other",
            header=("alone", "rows", "right together"),
            rows=counts,
        ),
        Table(
            title="Rows that one part mended for the other",
            header=("text", "label", first, second, "together"),
            rows=[
                (
                    excerpt(texts[n]),
                    class_names(labels[n], classes),
                    *(class_names(x[n], classes) for x in given),
                )
                for n in mended
            ],
            note=f"{len(mended)} of {sum(map(len, only)):,}.",
        ),
    ]
