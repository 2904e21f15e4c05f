"""Rows to score models on: those of some files, or the validation rows of a run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.in_memory import sources_of
from glassformer.data.ingest import ingest, rows_of
from glassformer.data.rows import InMemory, Row
from glassformer.data.samples import Samples
from glassformer.data.schema import Schema
from glassformer.data.splitter import IngestReport
from glassformer.errors import GlassformerError
from glassformer.runs.arguments import Data
from glassformer.runs.checksums import refuse_changed
from glassformer.runs.folder import RunFolder
from glassformer.runs.limits import scratch_folder
from glassformer.tasks import JOBS
from glassformer.tasks.job import AnyTask
from glassformer.training.loader import evaluation_batches
from glassformer.training.setup import TrainSetup


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedRows:
    """Rows of a split, on which models can be scored.

    Attributes:
        ingest: The report on reading them; None for rows of the run itself.
        max_rows: Use a sample of at most this many, the same every time.
    """

    task: AnyTask
    split: str
    setup: TrainSetup
    samples: Samples
    ingest: IngestReport | None = None
    max_rows: int | None = None

    def answers(self, model: nn.Module) -> Any:
        """What a model answers, in the order of the rows."""
        with torch.no_grad(), self.setup.machine.autocast():
            return self.task.sampled(self.task.answers(model, self._batches()), self.split)

    def all_answers(self, model: nn.Module) -> Any:
        """The same, with what the run has besides the model."""
        return self.task.combine(self.answers(model), self.split)

    def losses(self, model: nn.Module) -> Iterator[Float[Tensor, ""]]:
        """The losses of a model, batch by batch, each summed over its rows."""
        for batch in self._batches():
            with self.setup.machine.autocast():
                loss = self.task.loss(self.task.forward(model, batch), batch).total
            yield loss

    def _batches(self) -> Iterator[Any]:
        return evaluation_batches(self.task, self.setup, self.split, max_rows=self.max_rows)


@contextmanager
def opened_rows(
    folder: RunFolder,
    config: Config,
    task: AnyTask,
    setup: TrainSetup,
    data: Sequence[Data],
    columns: Mapping[str, str],
    *,
    header: bool | None = None,
    labelled: bool = True,
) -> Iterator[OpenedRows]:
    """The rows of some data; without any, the validation rows of the run.

    Args:
        columns: Those by role that differ from training.
        header: Whether the first row of a text table names its columns, if different from training.
        labelled: Whether the answers are read, too, to score predictions by them.
    """
    if not data:
        yield validation_rows(folder, config, setup)
        return
    schema = JOBS[config.job].schema
    schema, names = schema if labelled else schema.inputs(), sources_of(data)
    header = config.data.header if header is None else header
    read_as = replace(config.data, header=header)
    named = columns_in(names, folder, replace(config, data=read_as), schema) | dict(columns)
    group = named.pop("group", None) or group_of(folder, config)
    encoding = config.data.encoding
    files = DataConfig(test=names, columns=named, group=group, header=header, encoding=encoding)
    read = (
        rows_of_files(folder, config, task, setup, files)
        if labelled
        else inputs_of_files(task, setup, files, schema)
    )
    with read as rows:
        if "group" in columns and rows.ingest is not None and "group" not in rows.ingest.columns:
            raise GlassformerError(
                f"{names[0]}: has no column {columns['group']!r} to group rows by; choose one that "
                f"is there"
            )
        yield rows


@contextmanager
def rows_of_files(
    folder: RunFolder, config: Config, task: AnyTask, setup: TrainSetup, data: DataConfig
) -> Iterator[OpenedRows]:
    """The rows of the test files of `data`, read as a run reads them."""
    with scratch_folder() as place:
        samples, report = ingest(data, JOBS[config.job].schema, place)
        task.index(samples, place)
        samples = Samples.open(place)  # less what indexing left out
        report.count(samples.splits)
        yield OpenedRows(
            task=folder.open_task(config, place),
            split="test",
            setup=setup,
            samples=samples,
            ingest=report,
        )


@contextmanager
def inputs_of_files(
    task: AnyTask, setup: TrainSetup, data: DataConfig, schema: Schema
) -> Iterator[OpenedRows]:
    """The inputs in the test files of `data`, which need no answers.

    Args:
        schema: Without roles for answers.
    """
    with scratch_folder() as place:
        samples, report = ingest(data, schema, place)
        yield OpenedRows(task=task, split="test", setup=setup, samples=samples, ingest=report)


def validation_rows(folder: RunFolder, config: Config, setup: TrainSetup) -> OpenedRows:
    """The validation rows of a run; refused if they are gone."""
    if not (folder.data / "parts.npy").exists():
        raise GlassformerError(
            f"{folder.path}: the rows that it was trained on are gone; give a file of rows"
        )
    refuse_changed(folder.path, data=True)
    samples = Samples.open(folder.data)
    if not len(samples.rows("valid")):
        raise GlassformerError(f"{folder.path}: has no validation rows; give a file of rows")
    task = folder.open_task(config, folder.data)
    return OpenedRows(task=task, split="valid", setup=setup, samples=samples)


def group_of(folder: RunFolder, config: Config) -> str | None:
    """The column whose rows stay together in a run, by which intervals go."""
    return config.data.group or folder.intake().get("columns", {}).get("group")


def columns_in(
    names: Sequence[Any], folder: RunFolder, config: Config, schema: Schema
) -> dict[str, str]:
    """The columns by role that a run was trained on, as far as these data have them."""
    found: dict[str, str] = {}
    data = replace(config.data, columns=folder.intake().get("columns", {}))
    for name in schema.arrange(names):
        there = all(path.exists() for path in schema.files(name))
        if there or isinstance(name, InMemory):
            rows = rows_of(name, data, schema)
            found |= trained_columns(folder, schema, list(islice(rows, 1)))
    return found


def trained_columns(folder: RunFolder, schema: Schema, head: Sequence[Row]) -> dict[str, str]:
    """Those of the columns by role that the first row has."""
    known = folder.intake().get("columns", {})
    there = set(head[0].values) if head else set()
    return {r.name: known[r.name] for r in schema.roles if known.get(r.name) in there}
