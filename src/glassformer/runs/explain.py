"""Explaining predictions of a run: what they are based on, and how far to trust that."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from glassformer.errors import GlassformerError, unknown
from glassformer.explaining.explanation import Explanation
from glassformer.explaining.faithfulness import NOT_MEASURED, Faithfulness, choose_unmeasured
from glassformer.explaining.looking import attention_of
from glassformer.explaining.methods import METHODS
from glassformer.runs.arguments import Data
from glassformer.runs.faithfulness import (
    QUICK_ROWS,
    QUICK_SECONDS,
    ROWS,
    Progress,
    keep,
    kept,
    measured_on,
)
from glassformer.runs.folder import RunFolder
from glassformer.runs.rows import OpenedRows
from glassformer.tasks import JOBS
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.job import AnyTask
from glassformer.tasks.predictor import Predictor

LEFT_OUT = "The attention of the first {} layers is left out: the input is long."


@dataclass(frozen=True, kw_only=True, slots=True)
class RunExplainer:
    """Explains the predictions of a run.

    Args:
        opened: The rows of some data; without any, the validation rows of the run.
    """

    folder: RunFolder
    task: AnyTask
    model: nn.Module
    job: Explainer[Any, Any]
    predictor: Predictor[Any, Any]
    opened: Callable[..., AbstractContextManager[OpenedRows]]

    def configured(self, **options: Any) -> "RunExplainer":
        """The same with options of the job's predictor."""
        return replace(self, job=self.job.configured(**options)) if options else self

    def explain(
        self,
        given: Any,
        *,
        method: str | None = None,
        target: str | None = None,
        unit: str | None = None,
        progress: Progress = lambda count: None,
        measure: bool = True,
    ) -> Explanation:
        """What the prediction for an input is based on.

        Args:
            given: An input as the predictor accepts it.
            method: One of METHODS; by default the most faithful of those that take a moment, which
                is found out first, once for a run.
            target: What to explain instead of the prediction, such as another label.
            unit: What a piece is: word or token.
            progress: Told how many rows are done while faithfulness is measured.
            measure: Whether to measure it at all if it is not known; a server has no time for it.
        """
        if method is not None and method not in METHODS:
            raise GlassformerError(unknown("method", method, METHODS))
        subject = self.job.subject(self.model, given, target=target, unit=unit)
        trusted = kept(self.folder)
        if trusted is None and method is None and measure:
            trusted = self._quickly_measured(progress)
        name = method or (
            choose_unmeasured(subject) if trusted is None else trusted.choose(subject)
        )
        attention, left_out = attention_of(subject)
        return Explanation(
            job=self.task.name,
            given=subject.given,
            answer=subject.answer,
            pieces=subject.pieces,
            targets=subject.targets,
            influence=METHODS[name].influence(subject).cpu(),
            method=name,
            verdict=NOT_MEASURED if trusted is None else trusted.verdict(name),
            sound=subject.sound,
            beam=subject.beam,
            attention=attention,
            notes=(LEFT_OUT.format(left_out),) if left_out else (),
        )

    def measure(
        self, *data: Data, rows: int = ROWS, progress: Progress = lambda count: None
    ) -> Faithfulness:
        """How faithful every method is on these data, or on the validation rows; kept in the run.

        Args:
            rows: At most this many.
        """
        with self.opened(data) as opened:
            found = measured_on(opened, self.model, self.job, self.predictor, progress, rows=rows)
        keep(self.folder, found)
        return found

    def _quickly_measured(self, progress: Progress) -> Faithfulness | None:
        """The same on a few validation rows; None if they are gone."""
        limits = {"rows": QUICK_ROWS, "seconds": QUICK_SECONDS}
        try:
            with self.opened(()) as opened:
                found = measured_on(
                    opened, self.model, self.job, self.predictor, progress, **limits
                )
        except GlassformerError:
            return None
        keep(self.folder, found)
        return found


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
