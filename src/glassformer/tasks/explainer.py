"""The explainer of a job: what of a prediction can be explained.

It turns an input into a Subject, of which `explaining` computes everything else.
"""

from abc import ABC, abstractmethod
from typing import Any, Generic

from torch import nn

from glassformer.explaining.subject import Subject
from glassformer.tasks.predictor import Input, SomeTask


class Explainer(ABC, Generic[SomeTask, Input]):
    """Explains the predictions of an opened task."""

    def __init__(self, task: SomeTask) -> None:
        self.task = task

    @abstractmethod
    def subject(
        self,
        model: nn.Module,
        given: Input,
        *,
        target: str | None = None,
        unit: str | None = None,
    ) -> Subject:
        """An input, its prediction, and what is explained of it.

        Args:
            given: An input as the job's predictor accepts it.
            target: What to explain instead of the prediction: a label, or a text to be written.
            unit: What a piece is, where there is a choice: word or token.
        """

    def example(self, given: Input) -> Input:
        """An input of a stored sample as this job is asked for it, such as a text with a gap."""
        return given

    def configured(self, **options: Any) -> "Explainer[SomeTask, Input]":
        """The same explainer with options of the job's predictor."""
        return self
