"""A finished run: predict with it, evaluate it, explain its predictions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from glassformer import notebook
from glassformer.config import MachineConfig, require
from glassformer.config.run import Config
from glassformer.data.columns import parse_header
from glassformer.data.in_memory import is_missing, is_table_of_rows, sources_of
from glassformer.data.schema import Schema
from glassformer.errors import GlassformerError
from glassformer.explaining.explanation import Explanation
from glassformer.models.packing import for_inference, int8_twin
from glassformer.models.transformer import Classifier, MaskedModel
from glassformer.reports.wording import interval_notes, score_rows, written
from glassformer.runs.arguments import Data, in_words, named_columns
from glassformer.runs.evaluation import Evaluation, SplitAnswers, refuse_other, trained_on
from glassformer.runs.explain import Choices, RunExplainer, explainer_of
from glassformer.runs.folder import reporter_of
from glassformer.runs.heads import RunHeads
from glassformer.runs.inputs import TableInputs, table_inputs
from glassformer.runs.own_model import OwnModel
from glassformer.runs.rows import OpenedRows, opened_rows
from glassformer.runs.trained import (
    load_model,
    open_companion,
    open_folder,
    partial_predictions,
    predictions,
)
from glassformer.runs.warm_start import NETWORK_NOT_KEPT, refuse_untrained
from glassformer.tasks import JOBS
from glassformer.tasks.job import AnyTask
from glassformer.tasks.predictor import Partial, Prediction, Predictor, refuse_foreign_options
from glassformer.tasks.served import Embedder
from glassformer.terminal import print_line
from glassformer.training.machine import Machine, choose_machine
from glassformer.training.setup import TrainSetup

TOGETHER = 1024  # texts that are turned into vectors at a time


class Run:
    """A model and all that is needed to use it. Made by `glassformer.load` and `.train`.

    Args:
        path: The run folder.
        device: Where the model runs.
        int8: Whether it computes in int8, on a CPU: faster, and a little less exact.
        model: A person's own model, if it was trained with one.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        device: str = "auto",
        int8: bool = False,
        model: OwnModel | None = None,
    ) -> None:
        self.folder = open_folder(path, model)
        self.config: Config = self.folder.config()
        refuse_untrained(self.folder)
        self.machine: Machine = choose_machine(MachineConfig(device=device))
        self.int8 = int8
        if int8 and self.machine.device.type != "cpu":
            raise GlassformerError(
                f"int8 is for a CPU, but this machine uses {self.machine.device.type}; "
                f"choose the device cpu, or leave out int8"
            )
        self._companion = cache(partial(open_companion, device=device))

    @cached_property
    def task(self) -> AnyTask:
        """The task it was trained on, opened."""
        return self.folder.open_task(self.config, None)

    @property
    def schema(self) -> Schema:
        """The schema of the job."""
        return JOBS[self.config.job].schema

    @cached_property
    def model(self) -> nn.Module:
        """The trained model."""
        model = load_model(self.folder, self.config, self.task, self.machine)
        return int8_twin(model) if self.int8 else model

    @cached_property
    def fast_model(self) -> nn.Module:
        """The model used for predictions, with its weights laid out for speed on a CPU."""
        return for_inference(self.model.eval())

    @cached_property
    def report(self) -> dict[str, Any]:
        """The contents of report.json; empty if there is none."""
        return self.folder.read_report()

    @cached_property
    def predictor(self) -> Predictor[Any, Any]:
        """The predictor of the job."""
        return JOBS[self.config.job].predictor(self.task)

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text, as the model reads them, or as a transcriber writes them."""
        return self.task.tokenize(text)

    def predict(
        self, inputs: Any, *, columns: Mapping[str, str] | str | None = None, **options: Any
    ) -> Any:
        """Predict: one Prediction for one input, a list for several.

        A missing value in a list or a table, such as None or NaN, has an empty prediction.

        Args:
            inputs: What the job takes, such as a text, or several of them; or the rows of a
                DataFrame, an Arrow table or a list of dicts.
            columns: The columns to read from a table, by role, if not those of training: a
                dictionary, or text as on the command line.
            options: Those of the job's predictor, such as `alternatives=3` for a translator, and
                `baseline=True` for the answers of the baseline.
        """
        one = isinstance(inputs, self.predictor.kinds)
        inputs = self._several([inputs] if one else inputs, columns, **options)
        found = list(self.predict_each(inputs, **options))
        return found[0] if one else found

    def _several(
        self, inputs: Any, columns: Mapping[str, str] | str | None, **options: Any
    ) -> Iterable[Any]:
        """Inputs that are given together; those of a table are in its columns."""
        if is_table_of_rows(inputs):
            (name,) = sources_of([inputs])
            table = self.table_inputs(name, columns=columns, **options)
            return [given for _, given in table.pairs]
        if columns:
            raise GlassformerError("--columns is for the rows of a table; leave it out")
        if isinstance(inputs, Mapping) or not isinstance(inputs, Iterable):
            self.predictor.accept(inputs)  # raises, naming what it accepts
        several: Iterable[Any] = inputs
        return several

    def table_inputs(
        self,
        name: str,
        *,
        columns: Mapping[str, str] | str | None = None,
        header: bool | str | None = None,
        **options: Any,
    ) -> TableInputs:
        """The inputs in the rows of a file or folder, or of a table that is held in memory.

        Args:
            columns: As for `predict`.
            header: As for `evaluate`.
            options: Those of the job's predictor, which may decide what an input is.
        """
        found = table_inputs(
            name,
            self.folder,
            self.config.data,
            self.schema,
            self.configured(**options),
            named_columns(columns),
            parse_header(header),
        )
        if found.guessed:
            print_line(f"glassformer: {found}", stderr=True)
        return found

    def embed(
        self, texts: Any, *, columns: Mapping[str, str] | str | None = None
    ) -> Float[np.ndarray, "N D"] | Float[np.ndarray, " D"]:
        """Vectors of length 1 for texts: one for a text, a row each for several.

        The product of two is the cosine of the angle between them. A missing or empty text has a
        row of NaN. They are those of `/v1/embeddings`.

        Args:
            texts: A text, several of them, or the rows of a table.
            columns: The column to read from a table, as for `predict`.
        """
        self.refuse_without_vectors()
        if isinstance(texts, str):
            return self._vectors([texts])[0]
        texts = self._several(texts, columns)
        accept = self.predictor.accept
        given = [None if is_missing(one) else accept(one) for one in texts]
        parts = [self._vectors(given[n : n + TOGETHER]) for n in range(0, len(given), TOGETHER)]
        width = len(self._vectors([""])[0]) if not parts else 0
        return np.concatenate(parts) if parts else np.zeros((0, width), dtype=np.float32)

    def refuse_without_vectors(self) -> None:
        """Refuse a run that does not turn texts into vectors."""
        if isinstance(self.predictor, Embedder) and isinstance(
            self.fast_model, Classifier | MaskedModel
        ):
            return
        if not self.folder.keeps_network:
            raise GlassformerError(
                f"{self.folder.path}: {NETWORK_NOT_KEPT}; vectors come from the network, also of a "
                f"`pretrain` run on the same texts"
            )
        jobs = " or ".join(name for name in JOBS if JOBS.about(name).embeds)
        raise GlassformerError(
            f"{self.folder.path}: a run of {self.config.job} on {self.predictor.noun}s has no "
            f"vectors to give; train {jobs} on texts, with a model of the job"
        )

    def _vectors(self, texts: Sequence[str | None]) -> Float[np.ndarray, "N D"]:
        """The vectors of some texts; those of empty ones are NaN."""
        assert isinstance(self.predictor, Embedder)
        real = [number for number, text in enumerate(texts) if text and text.strip()]
        some = [text for text in texts if text and text.strip()] or ["."]  # for the width
        with torch.no_grad(), self.machine.autocast():
            found = self.predictor.unit_vectors(self._resting(), some)
        vectors = np.full((len(texts), found.shape[1]), np.nan, dtype=np.float32)
        vectors[real] = found[: len(real)]
        return vectors

    def is_column(self, text: str) -> bool:
        """Whether a line is the name of a column that inputs are read from, such as a header."""
        known = self.folder.intake().get("columns", {})
        roles = [role.name for role in self.schema.inputs().reading(known).roles if role.required]
        return text.strip() in {known.get(role, role) for role in roles} | {*roles}

    def predict_each(self, inputs: Iterable[Any], **options: Any) -> Iterator[Prediction]:
        """Yield predictions one by one as inputs arrive; that for None or NaN is empty."""
        predictor = self.configured(**options)
        yield from predictions(predictor, self._resting(), self.machine, inputs)

    def predict_partly(
        self, inputs: Iterable[Any], **options: Any
    ) -> Iterator[Prediction | Partial]:
        """Yield partial answers while they are written, then each prediction."""
        predictor = self.configured(**options)
        yield from partial_predictions(predictor, self._resting(), self.machine, inputs)

    def _resting(self) -> nn.Module:
        """The model for predictions, out of training; a walk through all its modules takes time."""
        return self.fast_model.eval() if self.fast_model.training else self.fast_model

    def configured(self, **options: Any) -> Predictor[Any, Any]:
        """The predictor with these options; unknown ones are refused."""
        predictor = self._baseline if options.pop("baseline", False) else self.predictor
        return predictor.configured(**self._resolved(options)) if options else predictor

    def _resolved(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of the job with other runs opened; unknown ones are refused."""
        about = JOBS[self.config.job].about
        refuse_foreign_options(about, options)
        runs = {option.name for option in about.options if option.run}
        return {
            name: self._companion(str(value)) if name in runs and value is not None else value
            for name, value in options.items()
        }

    @cached_property
    def _baseline(self) -> Predictor[Any, Any]:
        """The baseline that the report compares the model with, as a predictor."""
        found = self.predictor.baseline()
        if found is None:
            raise GlassformerError(
                f"{self.folder.path}: the run keeps no baseline; leave out the option baseline, or "
                f"train a run of a job that has one, with its library installed"
            )
        return found

    def explain(
        self,
        given: Any,
        *,
        method: str | None = None,
        target: str | None = None,
        unit: str | None = None,
        nearest: int = 0,
        measure: bool = True,
        keep: bool = True,
        out: str | Path | None = None,
        **options: Any,
    ) -> Explanation:
        """What the prediction for one input is based on: `run.explain("What a film")`.

        Args:
            method: A name in METHODS; by default the most faithful of those that take a moment.
            target: What to explain instead of the prediction, such as another label.
            unit: What a piece is, word or token.
            nearest: How many of the nearest training rows to find.
            measure: Whether to measure which method is most faithful, if that is not known.
            keep: Whether the run folder keeps what is measured.
            out: A file to write it to as well: .html, .png, .svg, .pdf or .json.
            options: Those of the job's predictor, such as `set="decode.method=greedy"`.
        """
        chosen = Choices(
            method=method, target=target, unit=unit, nearest=nearest, measure=measure, keep=keep
        )
        explainer = self.explainer.configured(**self._resolved(options))
        return explainer.explain_input(given, chosen, out=out)

    @cached_property
    def explainer(self) -> RunExplainer:
        """How faithful explanations are (`measure`), and what they say of many rows (`summary`)."""
        if self.int8:
            raise GlassformerError("int8 has no gradients; load the run without int8 to explain")
        return RunExplainer(
            folder=self.folder,
            task=self.task,
            model=self.model.eval(),
            job=explainer_of(self.folder, self.task),
            predictor=self.predictor,
            opened=partial(self._opened, labelled=False),
        )

    @cached_property
    def heads(self) -> RunHeads:
        """Where the heads of the model look, what they are worth, and which of them can go."""
        if not self.folder.keeps_network:
            raise GlassformerError(f"{self.folder.path}: {NETWORK_NOT_KEPT}; it has no heads")
        return RunHeads(model=self.model.eval(), predictor=self.predictor, opened=self._opened)

    @in_words
    def evaluate(
        self,
        *data: Data,
        against: "Run | str | Path | None" = None,
        columns: Mapping[str, str] | str | None = None,
        header: bool | str | None = None,
    ) -> Evaluation:
        """Scores on these data, and the comparison with another run.

        Args:
            data: Files, folders or names of the catalog, or rows, as for `train`.
            columns: Columns by role, if different from training: a dictionary, or text as on the
                command line.
            header: Whether the first row of a text table names its columns, if different from
                training.
        """
        require(bool(data), "evaluate needs data; give a file, a folder or rows")
        columns, header = named_columns(columns), parse_header(header)
        if against is not None and not isinstance(against, Run):
            against = Run(against, device=self.machine.device.type)
        if against is not None:
            refuse_other(self.folder, self.task, against.folder, against.task)
        ours = self._answers(data, columns, header)
        reporter, comparison, others = reporter_of(self.task), None, None
        if against is not None:
            theirs = against._answers(data, columns, header)
            if ours.rows != theirs.rows or ours.label_columns != theirs.label_columns:
                raise GlassformerError(
                    f"{against.folder.path}: reads different rows or labels from these data than "
                    f"{self.folder.path}; compare runs that read the same rows"
                )
            comparison = reporter.compare(ours.answers, theirs.answers)
            others = reporter.scores(theirs.answers)
        scores = reporter.scores(ours.answers)
        notes = interval_notes({"this run": scores}, reporter.units(ours.answers))
        return Evaluation(
            scores,
            ours.ingest,
            comparison,
            ours.trained_on,
            (*ours.remarks, *reporter.notes(ours.answers), *notes),
            others,
            reporter.score_tables(ours.answers),
        )

    def _answers(
        self, data: tuple[Data, ...], columns: Mapping[str, str], header: bool | None
    ) -> SplitAnswers:
        """The answers for all rows of some data."""
        with self._opened(data, columns, header=header) as rows:
            assert rows.ingest is not None
            where = [sample["where"] for sample in rows.samples.of("test")]
            known = trained_on(rows.samples, self.folder, self.schema, self.config.data)
            answers, remarks = rows.all_answers(self.model), reporter_of(rows.task).remarks()
            return SplitAnswers(answers, rows.ingest, where, known, remarks)

    def _opened(
        self,
        data: Sequence[Data],
        columns: Mapping[str, str] = MappingProxyType({}),
        *,
        header: bool | None = None,
        labelled: bool = True,
    ) -> AbstractContextManager[OpenedRows]:
        """The rows of some data, with their answers or without; see `opened_rows`."""
        setup = TrainSetup(self.config.train, self.config.data, self.machine, self.config.seed)
        given = self.folder, self.config, self.task, setup, data, columns
        return opened_rows(*given, header=header, labelled=labelled)

    def __repr__(self) -> str:
        ours: dict[str, Any] = next(iter(self.report.get("scores", {}).values()), {})
        found = [f"{name} {written(name, score.get('value'))}" for name, score in ours.items()]
        summary = f": {', '.join(found)}" if found else ""
        return f"Run({str(self.folder.path)!r}, {self.config.job}{summary})"

    def _repr_html_(self) -> str:
        """The notebook view: job, path, and scores beside the baseline."""
        title = f"{self.config.job}: {self.folder.path}"
        return notebook.table(title, *score_rows(self.report.get("scores", {})))
