"""The tables of a report on a translator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from glassformer.metrics.measurement import Measurement
from glassformer.reports.record import SOME_ROWS, Sections, Table
from glassformer.reports.tables import evenly, excerpt

WORST = 10
BANDS = 4  # of source lengths
ROW_SCORES = ("chrf", "ser", "cer", "exact")  # of single rows; the first measured is used


@dataclass(frozen=True, slots=True)
class Rows:
    """Pairs and their translations.

    Attributes:
        references: The right answers of each row; the first is shown.
        measured: Every score's sums, row by row.
        goal: The main score.
        languages: The target language of each row, if there are several.
    """

    sources: Sequence[str]
    references: Sequence[Sequence[str]]
    hypotheses: Sequence[str]
    measured: Mapping[str, Measurement]
    goal: str
    languages: Sequence[str] = ()

    def shown(self, row: int) -> tuple[str, str, str]:
        """A row for a table."""
        reference = self.references[row][0]
        return excerpt(self.sources[row]), excerpt(reference), excerpt(self.hypotheses[row])

    def score(self, rows: Int[np.ndarray, " chosen"]) -> float:
        """The goal on some of the rows."""
        one = self.measured[self.goal]
        return float(one.statistic(one.rows[rows].sum(0, keepdims=True))[0])


def translation_sections(rows: Rows) -> Sections:
    """Some rows, the worst rows, and scores by source length and target language."""
    tables = [some_rows(rows), worst_rows(rows), by_length(rows)]
    if rows.languages:
        tables.append(by_language(rows))
    return Sections(tables=tables)


def some_rows(rows: Rows) -> Table:
    """Evenly spaced rows."""
    return Table(
        title=SOME_ROWS,
        header=("source", "reference", "answer"),
        rows=[rows.shown(n) for n in evenly(len(rows.hypotheses))],
    )


def worst_rows(rows: Rows) -> Table:
    """The answers farthest from their references, where bad references are often found."""
    name = next(name for name in ROW_SCORES if name in rows.measured)
    one = rows.measured[name]
    found: Float[np.ndarray, " N"] = one.row_statistic(one.rows)
    wrong = rows.measured["exact"].rows[:, 0] == 0
    order = np.argsort(found if one.higher_is_better else -found, kind="stable")
    worst = [n for n in order.tolist() if wrong[n]][:WORST]
    return Table(
        title="The worst rows",
        header=("source", "reference", "answer", name),
        rows=[(*rows.shown(n), float(found[n])) for n in worst],
        note=f"{len(worst)} of {int(wrong.sum()):,} answers that are not exact."
        if worst
        else "Every answer is exact.",
    )


def by_length(rows: Rows) -> Table:
    """Length and score of answers, in bands of sources from short to long."""
    order = np.argsort([len(text) for text in rows.sources], kind="stable")
    bands = [band for band in np.array_split(order, BANDS) if len(band)]
    return Table(
        title="By length",
        header=(
            "characters of the source",
            *("rows", "characters of the reference", "of the answer", "ratio", rows.goal),
        ),
        rows=[length_row(rows, band) for band in bands],
        note="Means. A ratio below 1 means that answers stop too early.",
    )


def length_row(
    rows: Rows, band: Int[np.ndarray, " band"]
) -> tuple[str, int, float, float, float, float]:
    """The row of one band."""
    read = [len(rows.sources[n]) for n in band.tolist()]
    references = float(np.mean([len(rows.references[n][0]) for n in band.tolist()]))
    written = float(np.mean([len(rows.hypotheses[n]) for n in band.tolist()]))
    span = f"{min(read)} to {max(read)}"
    return span, len(band), references, written, written / max(references, 1.0), rows.score(band)


def by_language(rows: Rows) -> Table:
    """The score of each target language."""
    languages = np.array(rows.languages)
    parts = {name: np.flatnonzero(languages == name) for name in sorted(set(rows.languages))}
    return Table(
        title="By target language",
        header=("language", "rows", rows.goal),
        rows=[(name, len(part), rows.score(part)) for name, part in parts.items()],
    )
