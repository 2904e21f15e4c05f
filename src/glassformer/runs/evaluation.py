"""Answers of a run on some data, and their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glassformer.config import DataConfig
from glassformer.data.samples import Samples
from glassformer.data.schema import Schema
from glassformer.data.splitter import IngestReport
from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison
from glassformer.runs.checksums import refuse_changed
from glassformer.runs.folder import RunFolder, reporter_of
from glassformer.tasks.job import AnyTask


@dataclass(frozen=True, slots=True)
class SplitAnswers:
    """Answers of a run for every row of some data, with the report on reading them."""

    answers: Any
    ingest: IngestReport
    rows: list[str]
    trained_on: int | None
    remarks: list[str]

    @property
    def label_columns(self) -> dict[str, str]:
        """The columns that hold the labels; input columns may differ between runs."""
        return dict(list(self.ingest.columns.items())[1:])


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores with intervals, the rows behind them, and the comparison with another run.

    Attributes:
        trained_on: How many of the rows were in the training data; None if unknown.
        notes: Remarks about the rows and the scores.
        others: The scores of the other run, if there is one.
    """

    scores: dict[str, Score]
    ingest: IngestReport
    comparison: dict[str, Comparison] | None
    trained_on: int | None
    notes: Sequence[str] = ()
    others: dict[str, Score] | None = None

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        scores = _plain(self.scores)
        values: dict[str, Any] = {
            **scores,
            "scores": scores,
            "rows": sum(self.ingest.counts.values()),
            "skipped": {reason: entry.count for reason, entry in self.ingest.skipped.items()},
            "trained_on": self.trained_on,
            "notes": list(self.notes),
        }
        if self.comparison is not None:
            values["against"] = _plain(self.comparison)
            values["against_scores"] = _plain(self.others or {})
        return values


def refuse_other(folder: RunFolder, task: AnyTask, other: RunFolder, other_task: AnyTask) -> None:
    """Refuse to compare runs of different jobs or labels."""
    if other_task.name != task.name:
        raise GlassformerError(
            f"{other.path}: its job is {other_task.name}, not {task.name}; compare two runs of the "
            f"same job"
        )
    if reporter_of(other_task).vocabulary != reporter_of(task).vocabulary:
        raise GlassformerError(
            f"{other.path}: has different output labels than {folder.path}; compare two runs with "
            f"the same ones"
        )


def trained_on(
    samples: Samples, folder: RunFolder, schema: Schema, config: DataConfig
) -> int | None:
    """How many of these samples a run was trained on; None if its samples are gone."""
    if not (folder.data / "parts.npy").exists():
        return None
    refuse_changed(folder.path, data=True)
    learned = {schema.content(one, config) for one in Samples.open(folder.data).of("train")}
    return sum(schema.content(sample, config) in learned for sample in samples.of("test"))


def _plain(found: Mapping[str, Score] | Mapping[str, Comparison]) -> dict[str, Any]:
    return {name: one.as_values() for name, one in found.items()}
