"""A finished run: predict with it, evaluate it."""

import html
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from glassformer.config import DataConfig, MachineConfig
from glassformer.config.run import Config
from glassformer.data.ingest import LOOKED_AT, ingest, rows_of
from glassformer.data.rows import Row
from glassformer.data.samples import Samples
from glassformer.data.schema import Schema
from glassformer.errors import GlassformerError
from glassformer.models.packing import for_inference
from glassformer.reports.wording import written
from glassformer.runs.checksums import refuse_changed
from glassformer.runs.evaluation import Evaluation, Said
from glassformer.runs.folder import RunFolder, reporter_of
from glassformer.runs.request import named_columns, path_of
from glassformer.runs.trained import load_model, predictions, refuse_unusable
from glassformer.tasks import JOBS
from glassformer.tasks.job import JobTask
from glassformer.tasks.predictor import Prediction, Predictor, refuse_foreign_options
from glassformer.training.loader import split_batches
from glassformer.training.machine import Machine, choose_machine
from glassformer.training.setup import TrainSetup


class Run:
    """A model and all that is needed to use it. Made by `glassformer.load` and `.train`.

    Args:
        path: The run folder.
        device: Where the model runs.
    """

    def __init__(self, path: str | Path, *, device: str = "auto") -> None:
        self.folder = RunFolder(path_of(path, "a run"))
        self.config: Config = self.folder.config()
        refuse_unusable(self.folder)
        self.machine: Machine = choose_machine(MachineConfig(device=device))

    @cached_property
    def task(self) -> JobTask[Any, Any, Any]:
        """The task it was trained on, opened."""
        return self.folder.open_task(self.config, None)

    @property
    def schema(self) -> Schema:
        """What the job needs of data."""
        return JOBS[self.config.job].schema

    @cached_property
    def model(self) -> nn.Module:
        """The trained model."""
        return load_model(self.folder, self.config, self.task, self.machine)

    @cached_property
    def _fast(self) -> nn.Module:
        """What predicts: the model as it is now, with its weights laid out for speed on a CPU."""
        return for_inference(self.model.eval())

    @cached_property
    def report(self) -> dict[str, Any]:
        """What report.json says; empty when there is none."""
        return self.folder.read_report()

    @cached_property
    def predictor(self) -> Predictor[Any, Any]:
        """What predicts with the model."""
        return JOBS[self.config.job].predictor(self.task)

    def predict(self, inputs: Any, **options: Any) -> Any:
        """Predict: one Prediction for one input, a list for several.

        Args:
            inputs: What the job takes, such as a text, or several of them.
            options: Those of the job's predictor, such as `alternatives=3` for a translator.
        """
        one = isinstance(inputs, self.predictor.kinds)
        if not one and (isinstance(inputs, Mapping) or not isinstance(inputs, Iterable)):
            self.predictor.accept(inputs)  # which says what it takes
        found = list(self.predict_each([inputs] if one else inputs, **options))
        return found[0] if one else found

    def predict_each(self, inputs: Iterable[Any], **options: Any) -> Iterator[Prediction]:
        """Predict one after the other, as the inputs come."""
        predictor = self.configured(**options)
        yield from predictions(predictor, self._fast.eval(), self.machine, inputs)

    def configured(self, **options: Any) -> Predictor[Any, Any]:
        """The predictor with these options, refused where the job does not have them."""
        if not options:
            return self.predictor
        refuse_foreign_options(JOBS[self.config.job].about, options)
        return self.predictor.configured(**options)

    def evaluate(
        self,
        *data: str | Path,
        against: "Run | str | Path | None" = None,
        columns: Mapping[str, str] | str | None = None,
    ) -> Evaluation:
        """How good it is on these data, and how far better than another run.

        Args:
            columns: Which column plays which role, where it is not as in training: a dictionary,
                or as on the command line.
        """
        columns = named_columns(columns)
        if against is not None and not isinstance(against, Run):
            against = Run(against, device=self.machine.device.type)
        if against is not None:
            self._refuse_other(against)
        ours = self._answers(data, columns)
        reporter, comparison, others = reporter_of(self.task), None, None
        if against is not None:
            theirs = against._answers(data, columns)
            if ours.rows != theirs.rows or ours.answered_in != theirs.answered_in:
                raise GlassformerError(
                    f"{against.folder.path}: reads other rows or labels of these data than "
                    f"{self.folder.path}; compare two runs that are asked the same"
                )
            comparison = reporter.compare(ours.said, theirs.said)
            others = reporter.scores(theirs.said)
        return Evaluation(
            reporter.scores(ours.said),
            ours.taken,
            comparison,
            ours.trained_on,
            (*ours.remarks, *reporter.notes(ours.said)),
            others,
        )

    def _refuse_other(self, against: "Run") -> None:
        """Two runs can be compared when they do one job and answer in the same words."""
        if against.config.job != self.config.job:
            raise GlassformerError(
                f"{against.folder.path}: does {against.config.job}, not {self.config.job}; "
                f"compare two runs of one job"
            )
        if reporter_of(against.task).vocabulary != reporter_of(self.task).vocabulary:
            raise GlassformerError(
                f"{against.folder.path}: answers in other labels than {self.folder.path}; "
                f"compare two runs with the same labels"
            )

    def _answers(self, data: tuple[str | Path, ...], columns: Mapping[str, str]) -> Said:
        """What it says about all rows of some files."""
        with tempfile.TemporaryDirectory(prefix="glassformer-") as scratch:
            place, names = Path(scratch), tuple(map(str, data))
            encoding = self.config.data.encoding
            named = self._columns(names) | dict(columns)
            config = DataConfig(test=names, columns=named, encoding=encoding)
            samples, taken = ingest(config, self.schema, place)
            self.task.index(samples, place)
            job = self.folder.open_task(self.config, place)
            reporter = reporter_of(job)
            setup = TrainSetup(self.config.train, self.config.data, self.machine, self.config.seed)
            with torch.no_grad(), self.machine.autocast():
                said = reporter.answers(self.model, split_batches(job, setup, "test"))
            where = [sample["where"] for sample in samples.of("test")]
            return Said(said, taken, where, self._trained_on(samples), reporter.remarks())

    def _trained_on(self, samples: Samples) -> int | None:
        """How many of these samples it has learned from; None when its own are gone."""
        if not (self.folder.data / "parts.npy").exists():
            return None
        refuse_changed(self.folder.path, data=True)
        content, config = self.schema.content, self.config.data
        learned = {content(one, config) for one in Samples.open(self.folder.data).of("train")}
        return sum(content(sample, config) in learned for sample in samples.of("test"))

    def inputs_of(self, rows: Iterable[Row]) -> Iterator[Any]:
        """The inputs in a table's rows: the columns that were trained on, or the likeliest."""
        rest, schema = iter(rows), self.schema.inputs()
        head = list(islice(rest, LOOKED_AT))
        columns = schema.find_columns(head, self._trained_columns(schema, head))
        for row in chain(head, rest):
            found = {
                r.name: schema.value(r, row, columns) for r in schema.roles if r.name in columns
            }
            yield self.predictor.from_sample(found)

    def _columns(self, names: Sequence[str]) -> dict[str, str]:
        """The columns that were trained on, as far as these files have them."""
        found: dict[str, str] = {}
        for name in self.schema.arrange(names):
            if all(path.exists() for path in self.schema.files(name)):
                rows = rows_of(name, self.config.data, self.schema)
                found |= self._trained_columns(self.schema, list(islice(rows, 1)))
        return found

    def _trained_columns(self, schema: Schema, head: list[Row]) -> dict[str, str]:
        known = self.folder.intake().get("columns", {})
        there = set(head[0].values) if head else set()
        return {r.name: known[r.name] for r in schema.roles if known.get(r.name) in there}

    def __repr__(self) -> str:
        ours: dict[str, Any] = next(iter(self.report.get("scores", {}).values()), {})
        said = ", ".join(
            f"{name} {written(name, score.get('value'))}" for name, score in ours.items()
        )
        return f"Run({str(self.folder.path)!r}, {self.config.job}{': ' + said if said else ''})"

    def _repr_html_(self) -> str:
        """How a notebook shows it: what it is, and its scores beside the baseline's."""
        scores = self.report.get("scores", {})
        names = list(next(iter(scores.values()), {}))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = "".join(
            f"<tr><td>{html.escape(system)}</td>"
            + "".join(f"<td>{_shown(name, found.get(name))}</td>" for name in names)
            + "</tr>"
            for system, found in scores.items()
        )
        title = f"{html.escape(self.config.job)}: {html.escape(str(self.folder.path))}"
        return f"<b>{title}</b><table><tr><th></th>{head}</tr>{rows}</table>"


def _shown(name: str, score: dict[str, float | None] | None) -> str:
    if score is None:
        return ""
    value, low, high = (written(name, score.get(end)) for end in ("value", "low", "high"))
    return f"{value} <small>[{low}, {high}]</small>"
