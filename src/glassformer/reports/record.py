"""The contents of a report: plain records, the same for every job."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from glassformer.files import plain
from glassformer.metrics.calibration import Bin
from glassformer.metrics.intervals import Score

BY_CLASS = "By class"  # the title of a table with a row for each class
SOME_ROWS = "Some rows"  # the title of a table that terminals show, too


@dataclass(frozen=True, slots=True)
class Sound:
    """A recording that a page plays; only pages hold it."""

    mp3: bytes


Cell = str | int | float | Sound | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows under a header. Columns of numbers are aligned as such."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def as_values(self) -> dict[str, Any]:
        """Everything as plain values; a recording becomes None."""
        rows = [[None if isinstance(x, Sound) else x for x in row] for row in self.rows]
        return {"title": self.title, "header": self.header, "rows": rows, "note": self.note}


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatMap:
    """Counts of each class (down) predicted as each class (across).

    Attributes:
        low, high: Their intervals; empty where there are none, as for grouped rows.
    """

    title: str
    names: Sequence[str]
    counts: Sequence[Sequence[int]]
    low: Sequence[Sequence[int]]
    high: Sequence[Sequence[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sections:
    """What a job adds to its report, in the fields of the same names."""

    tables: Sequence[Table] = ()
    heat_map: HeatMap | None = None
    reliability: Sequence[Bin] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The report of one run. Everything but the title is optional.

    Attributes:
        facts: Facts of the run: name and value, in display order.
        scores: By system, then by score; ours first, then the baseline.
        baseline: Which of these systems is the baseline, if one is.
        curves: Name to (step, value) pairs. Curves whose names end in the same word share a chart.
        reliability: Accuracy by confidence.
        verdict: Sentences on how good the model is; a page begins with them.
        notes: Sentences: warnings, skipped rows, decisions.
    """

    title: str
    facts: Mapping[str, Cell] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    baseline: str | None = None
    curves: Mapping[str, Sequence[tuple[int | float, int | float]]] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    heat_map: HeatMap | None = None
    reliability: Sequence[Bin] = ()
    verdict: Sequence[str] = ()
    notes: Sequence[str] = ()

    def as_values(self) -> dict[str, Any]:
        """Everything as plain values for JSON; NaN becomes None. Notes begin with the verdict."""
        return plain(
            {
                "title": self.title,
                "facts": self.facts,
                "scores": {
                    system: {name: score.as_values() for name, score in scores.items()}
                    for system, scores in self.scores.items()
                },
                "baseline": self.baseline,
                "curves": self.curves,
                "tables": [table.as_values() for table in self.tables],
                "heat_map": asdict(self.heat_map) if self.heat_map else None,
                "reliability": [asdict(entry) for entry in self.reliability],
                "verdict": self.verdict,
                "notes": [*self.verdict, *self.notes],
            }
        )
