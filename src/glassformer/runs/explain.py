"""Explaining predictions of a run: what they are based on, and how far to trust that."""

from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from glassformer.errors import GlassformerError, unknown
from glassformer.explaining.explanation import Explanation
from glassformer.explaining.looking import attention_of
from glassformer.explaining.methods import METHODS
from glassformer.runs.folder import RunFolder
from glassformer.tasks import JOBS
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.job import AnyTask

LEFT_OUT = "The attention of the first {} layers is left out: the input is long."
USUAL = "gradient_x_input"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunExplainer:
    """Explains the predictions of a run."""

    folder: RunFolder
    task: AnyTask
    model: nn.Module
    job: Explainer[Any, Any]

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
    ) -> Explanation:
        """What the prediction for an input is based on.

        Args:
            given: An input as the predictor accepts it.
            method: One of METHODS; by default the most faithful one that is fast.
            target: What to explain instead of the prediction, such as another label.
            unit: What a piece is: word or token.
        """
        if method is not None and method not in METHODS:
            raise GlassformerError(unknown("method", method, METHODS))
        name = method or USUAL
        subject = self.job.subject(self.model, given, target=target, unit=unit)
        attention, left_out = attention_of(subject)
        return Explanation(
            job=self.task.name,
            given=subject.given,
            answer=subject.answer,
            pieces=subject.pieces,
            targets=subject.targets,
            influence=METHODS[name].influence(subject).cpu(),
            method=name,
            sound=subject.sound,
            beam=subject.beam,
            attention=attention,
            notes=(LEFT_OUT.format(left_out),) if left_out else (),
        )


def explainer_of(folder: RunFolder, task: AnyTask, model: nn.Module) -> RunExplainer:
    """What explains the predictions of a run; refused if its job cannot."""
    made = JOBS[task.name].explainer
    if made is None:
        raise GlassformerError(f"{folder.path}: {task.name} has nothing to explain; use predict")
    return RunExplainer(folder=folder, task=task, model=model, job=made(task))
