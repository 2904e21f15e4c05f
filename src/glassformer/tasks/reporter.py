"""The reporter of a job: how good a trained model is, and what a report shows about it.

A reporter must give answers, their scores, and the comparison of two systems. The rest has
defaults: a job without a baseline, or without tables of its own, leaves those methods out.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from torch import nn

from glassformer.data.samples import Sample
from glassformer.metrics.paired import Comparison
from glassformer.metrics.score import Score
from glassformer.reports import Sections, Table

SomeTask = TypeVar("SomeTask")
Answers = TypeVar("Answers")


@dataclass(frozen=True, slots=True)
class Baseline(Generic[Answers]):
    """What a simple system says about the same rows.

    Attributes:
        kind: What it is, in a word or two.
        chosen: What was chosen on the validation rows, or follows from the data.
        notes: What to know about it.
    """

    kind: str
    chosen: str
    answers: Answers
    notes: Sequence[str] = ()

    @property
    def name(self) -> str:
        """What a report calls it."""
        return f"{self.kind} ({self.chosen})"


class Reporter(ABC, Generic[SomeTask, Answers]):
    """Reports on an opened task.

    Attributes:
        score_names: The scores that a report may have.
        calibrates: Whether `calibrate` learns something from the validation rows.
        pools: Whether `pool` joins the answers of several models, as folds need.
    """

    score_names: ClassVar[Sequence[str]]
    calibrates: ClassVar[bool] = False
    pools: ClassVar[bool] = False

    def __init__(self, task: SomeTask) -> None:
        self.task = task

    @abstractmethod
    def answers(self, model: nn.Module, batches: Iterable[Any]) -> Answers:
        """What the model says about the rows of these batches, in the order of the rows."""

    @abstractmethod
    def scores(self, answers: Answers) -> dict[str, Score]:
        """How good the answers are, with intervals; the task's goal is among the names."""

    @abstractmethod
    def compare(self, first: Answers, second: Answers) -> dict[str, Comparison]:
        """How far the first answers are above the second, on the same rows."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """What answers are made of, such as labels; two runs that share it can be compared."""
        return ()

    def remarks(self) -> list[str]:
        """What to know about the samples before training, such as texts that are cut."""
        return []

    def notes(self, answers: Answers) -> list[str]:
        """What to know about the scores of these answers."""
        return []

    def sections(self, answers: Answers, samples: Sequence[Sample]) -> Sections:
        """Tables and charts about the answers to these samples."""
        return Sections()

    def baseline(self, split: str) -> Baseline[Answers] | None:
        """A simple system, trained on the same rows and tried on the same split.

        A GlassformerError says why there is none, such as a library that is not installed.
        """
        return None

    def beside(self, ours: Answers, theirs: Answers, samples: Sequence[Sample]) -> list[Table]:
        """Tables of the model beside the baseline."""
        return []

    def baseline_seconds(self) -> float:
        """About how long the baseline takes, and scores that take long; 0 without a baseline."""
        return 0.0

    def timed_baseline_seconds(self) -> float:
        """The same, measured on some of the rows where that is worth it."""
        return self.baseline_seconds()

    def calibrate(self, answers: Answers) -> None:
        """Learn from the answers to the validation rows, such as how confident to be."""

    def pool(self, answers: Sequence[Answers]) -> Answers:
        """The answers of several models to different rows, joined in this order."""
        raise NotImplementedError
