"""Answers of a run on some data, and their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from glassformer import notebook
from glassformer.config import DataConfig
from glassformer.data.samples import Samples
from glassformer.data.schema import Schema
from glassformer.data.splitter import IngestReport
from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison
from glassformer.reports import Table
from glassformer.reports.wording import chance, interval, written
from glassformer.runs.checksums import refuse_changed
from glassformer.runs.folder import RunFolder, reporter_of
from glassformer.tasks.job import AnyTask
from glassformer.terminal import aligned, printable
from glassformer.wording import counted


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
        columns = list(self.ingest.columns.items())[1:]
        return {role: column for role, column in columns if role != "group"}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores with intervals, the rows behind them, and the comparison with another run.

    Attributes:
        trained_on: How many of the rows were in the training or validation data, of which a model
            may have learned both; None if unknown.
        notes: Remarks about the rows and the scores.
        others: The scores of the other run, if there is one.
        tables: Scores in more detail, such as by class.
    """

    scores: dict[str, Score]
    ingest: IngestReport
    comparison: dict[str, Comparison] | None
    trained_on: int | None
    notes: Sequence[str] = ()
    others: dict[str, Score] | None = None
    tables: Sequence[Table] = ()

    def __repr__(self) -> str:
        rows, header = self._rows()
        table = aligned([header, *rows] if self.others else rows)
        return "\n".join([self._title, table, *map(printable, self._sentences())])

    def _repr_html_(self) -> str:
        """The notebook view: the scores, beside those of the other run if there is one."""
        rows, header = self._rows()
        table = notebook.table(self._title, rows, header if self.others else ())
        return table + notebook.paragraphs(self._sentences())

    @property
    def _title(self) -> str:
        return f"Evaluation on {counted(sum(self.ingest.counts.values()), 'row')}"

    def _rows(self) -> tuple[list[list[str]], list[str]]:
        """A row for every score: its name, its value and interval, and those of the other run."""
        systems = [_plain(self.scores), *([_plain(self.others)] if self.others else [])]
        rows = [
            [name, *(interval(name, found.get(name)) for found in systems)] for name in self.scores
        ]
        return rows, ["", "this run", "the other"]

    def _sentences(self) -> list[str]:
        """What else is to be known of the rows and the scores."""
        differences = [
            f"{name}: {written(name, one.difference.value, '+')}, "
            f"{one.reason or chance(one.p_value)}"
            for name, one in (self.comparison or {}).items()
        ]
        return [*differences, *([self.optimism] if self.trained_on else []), *self.notes]

    @property
    def optimism(self) -> str:
        """How many of the rows the run has seen before."""
        count = self.trained_on or 0
        were = "row was" if count == 1 else "rows were"
        return f"{count:,} {were} in the training or validation data; the scores are optimistic"

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
            "tables": [table.as_values() for table in self.tables],
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
    """How many of these samples a run has seen before; None if its own samples are gone."""
    if not (folder.data / "parts.npy").exists():
        return None
    refuse_changed(folder.path, data=True)
    seen = Samples.open(folder.data)
    both = chain(seen.of("train"), seen.of("valid"))
    learned = {schema.content(one, config) for one in both}
    return sum(schema.content(sample, config) in learned for sample in samples.of("test"))


def _plain(found: Mapping[str, Score] | Mapping[str, Comparison]) -> dict[str, Any]:
    return {name: one.as_values() for name, one in found.items()}
