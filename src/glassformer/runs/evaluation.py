"""What a run says about data, and how good that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glassformer.data.splitter import IngestReport
from glassformer.metrics.paired import Comparison
from glassformer.metrics.score import Score


@dataclass(frozen=True, slots=True)
class Said:
    """What a run says about some data, what came in of them, and which rows those are."""

    said: Any
    taken: IngestReport
    rows: list[str]
    trained_on: int | None
    remarks: list[str]

    @property
    def answered_in(self) -> dict[str, str]:
        """The columns that hold the right answers; what is read may differ."""
        return dict(list(self.taken.columns.items())[1:])


class Evaluation:
    """Scores with intervals, the rows behind them, and the comparison with another run.

    Attributes:
        trained_on: How many of the rows the run has learned from; None when nobody knows.
        notes: What to know about the rows and the scores.
        others: The scores of the other run, where there is one.
    """

    def __init__(
        self,
        scores: dict[str, Score],
        taken: IngestReport,
        comparison: dict[str, Comparison] | None,
        trained_on: int | None,
        notes: Sequence[str] = (),
        others: dict[str, Score] | None = None,
    ) -> None:
        self.scores, self.taken, self.comparison = scores, taken, comparison
        self.trained_on, self.notes, self.others = trained_on, notes, others

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        scores = _plain(self.scores)
        values: dict[str, Any] = {
            **scores,
            "scores": scores,
            "rows": sum(self.taken.counts.values()),
            "skipped": {reason: entry.count for reason, entry in self.taken.skipped.items()},
            "trained_on": self.trained_on,
            "notes": list(self.notes),
        }
        if self.comparison is not None:
            values["against"] = _plain(self.comparison)
            values["against_scores"] = _plain(self.others or {})
        return values


def _plain(found: Mapping[str, Score] | Mapping[str, Comparison]) -> dict[str, Any]:
    return {name: one.as_values() for name, one in found.items()}
