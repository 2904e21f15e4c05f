"""Explaining predictions of a run: what they are based on, and how far to trust that."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from torch import nn

from glassformer.errors import GlassformerError, unknown
from glassformer.explaining.explanation import Explanation
from glassformer.explaining.faithfulness import (
    NOT_MEASURED,
    Faithfulness,
    choose_unmeasured,
)
from glassformer.explaining.looking import attention_of
from glassformer.explaining.methods import METHODS, Influence
from glassformer.explaining.parts import Neighbour
from glassformer.explaining.subject import Subject
from glassformer.explaining.summary import summarise
from glassformer.explaining.views.output import check_out
from glassformer.runs.arguments import Data
from glassformer.runs.display import Display, Done
from glassformer.runs.faithfulness import (
    QUICK_ROWS,
    QUICK_SECONDS,
    ROWS,
    inputs_in,
    keep,
    kept,
    measured_on,
)
from glassformer.runs.folder import RunFolder
from glassformer.runs.nearest import TrainingVectors, training_vectors
from glassformer.runs.row_results import MethodsCompared, WordsRanked
from glassformer.runs.rows import OpenedRows
from glassformer.runs.warm_start import NETWORK_NOT_KEPT
from glassformer.tasks import JOBS
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.job import AnyTask
from glassformer.tasks.predictor import Predictor

SUMMARISED = 200  # rows
LEFT_OUT = "The attention of the first {} layers is left out: the input is long."


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """How an input is explained.

    Attributes:
        method: One of METHODS; by default the most faithful of those that take a moment.
        target: What to explain instead of the prediction, such as another label.
        unit: What a piece is: word or token.
        nearest: How many of the nearest training rows to find.
        attention: Whether to keep the weights of attention.
        measure: Whether to measure faithfulness if it is not known.
        keep: Whether the run folder keeps what is measured; a server writes nothing there.
    """

    method: str | None = None
    target: str | None = None
    unit: str | None = None
    nearest: int = 0
    attention: bool = True
    measure: bool = True
    keep: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class RunExplainer:
    """Explains the predictions of a run.

    Args:
        opened: The rows of some data; without any, the validation rows of the run.
        vectors: Those of the training rows, once they were computed.
        measured: What was measured before the first explanation, where the folder cannot keep it.
    """

    folder: RunFolder
    task: AnyTask
    model: nn.Module
    job: Explainer[Any, Any]
    predictor: Predictor[Any, Any]
    opened: Callable[..., AbstractContextManager[OpenedRows]]
    display: Display = field(default_factory=Display)
    vectors: list[TrainingVectors] = field(default_factory=list)
    measured: list[Faithfulness | None] = field(default_factory=list)

    def configured(self, **options: Any) -> "RunExplainer":
        """The same with options of the job's predictor."""
        return replace(self, job=self.job.configured(**options)) if options else self

    def explain_input(
        self, given: Any, chosen: Choices, *, out: str | Path | None = None
    ) -> Explanation:
        """The explanation of an input from Python, also written to a file if there is one."""
        if not isinstance(given, self.predictor.kinds):
            raise GlassformerError(
                f"explain takes one {self.predictor.noun}, got {given!r}; explain several one by "
                f"one, or sum up many rows with run.explainer.summary(...)"
            )
        if out is not None:
            check_out(Path(out))
        found = self.explain(self.predictor.accept(given), chosen)
        if out is not None:
            found.save(out)
        return found

    def explain(self, given: Any, chosen: Choices) -> Explanation:
        """What the prediction for an input is based on."""
        method = chosen.method
        if method is not None and method not in METHODS:
            raise GlassformerError(unknown("method", method, METHODS))
        if method is not None and METHODS[method].inside and not self.folder.keeps_network:
            others = [name for name, one in METHODS.items() if not one.inside]
            raise GlassformerError(
                f"{self.folder.path}: {NETWORK_NOT_KEPT}; {method} looks inside it: choose "
                f"{', '.join(others[:-1])} or {others[-1]}"
            )
        subject = self.job.subject(self.model, given, target=chosen.target, unit=chosen.unit)
        trusted = kept(self.folder)
        if trusted is None and chosen.measure:
            if not self.measured:
                self.measured.append(self._quickly_measured(keep_it=chosen.keep))
            trusted = self.measured[0]
        name = method or (
            choose_unmeasured(subject)
            if trusted is None or trusted.too_few
            else trusted.choose(subject)
        )
        maps, left_out = attention_of(subject) if chosen.attention else ((), 0)
        return Explanation(
            job=self.task.name,
            given=subject.given,
            answer=subject.answer,
            reason=subject.reason,
            strange=tuple(sorted(subject.strange)),
            pieces=subject.pieces,
            targets=subject.targets,
            influence=self._influence(subject, name),
            method=name,
            signed=METHODS[name].signed,
            verdict=NOT_MEASURED if trusted is None else trusted.verdict(name),
            sound=subject.sound,
            image=subject.image,
            beam=subject.beam,
            attention=maps,
            neighbours=self._neighbours(subject, chosen.nearest) if chosen.nearest else (),
            notes=(*subject.notes, *([LEFT_OUT.format(left_out)] if left_out else [])),
        )

    def measure(self, *data: Data, rows: int = ROWS) -> MethodsCompared:
        """How faithful every method is on these data, or on the validation rows.

        What was measured on the validation rows is kept in the run.

        Args:
            rows: At most this many.
        """
        found = self._measured(data, rows=rows)
        if not data:
            keep(self.folder, found)
        return MethodsCompared(found)

    def summary(
        self, *data: Data, method: str | None = None, rows: int = SUMMARISED
    ) -> WordsRanked:
        """Which words matter overall in these data, or in the validation rows.

        Args:
            rows: At most this many, a sample of more.
        """
        with self.opened(data) as opened, self.display.bar("explaining rows") as progress:
            try:
                return WordsRanked(summarise(self._explained(opened, method, rows, progress)))
            except ValueError:
                raise GlassformerError(
                    "no row has anything to explain; give a file of other rows"
                ) from None

    def _explained(
        self, opened: OpenedRows, method: str | None, rows: int, progress: Done
    ) -> Iterator[Explanation]:
        """Explanations of some rows by one method.

        Rows that cannot be explained, such as a recording in which nothing is heard, are left out.
        """
        total, found, failed = min(rows, len(opened.samples.rows(opened.split))), None, None
        for done, given in enumerate(islice(inputs_in(opened, self.job, self.predictor), rows), 1):
            progress(done, total)
            try:
                found = self.explain(given, Choices(method=method, attention=False))
            except GlassformerError as error:
                failed = error
                continue
            method = found.method
            yield found
        if failed is not None and found is None:
            raise failed

    def _neighbours(self, subject: Subject, most: int) -> tuple[Neighbour, ...]:
        """The nearest training rows; their vectors are computed once."""
        with self.opened(()) as opened:
            if not self.vectors:
                with self.display.bar("reading training rows") as progress:
                    self.vectors.append(training_vectors(opened, self.model, progress))
            return self.vectors[0].neighbours(subject, opened, most)

    def _quickly_measured(self, *, keep_it: bool) -> Faithfulness | None:
        """The faithfulness on a few validation rows; None if they are gone."""
        try:
            found = self._measured((), rows=QUICK_ROWS, seconds=QUICK_SECONDS)
        except GlassformerError:
            return None
        if keep_it:
            keep(self.folder, found)
        return found

    def _measured(self, data: Sequence[Data], **limits: Any) -> Faithfulness:
        bar = self.display.bar("measuring which method is faithful")
        with self.opened(data) as opened, bar as progress:
            return measured_on(opened, self.model, self.job, self.predictor, progress, **limits)

    def _influence(self, subject: Subject, method: str) -> Influence:
        with self.display.bar(method) as progress:
            subject.progress = progress
            return METHODS[method].influence(subject).cpu()


def explainer_of(folder: RunFolder, task: AnyTask) -> Explainer[Any, Any]:
    """The explainer of a job; refused if it has none, and for a model that only its owner knows."""
    made = JOBS[task.name].explainer
    if task.own_model is not None:
        raise GlassformerError(
            f"{folder.path}: its model is your own, and explanations look inside those of "
            f"glassformer; use predict"
        )
    if made is None:
        raise GlassformerError(f"{folder.path}: {task.name} has nothing to explain; use predict")
    return made(task)
