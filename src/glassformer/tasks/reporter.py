"""The reporter of a job: how good a trained model is, and what a report shows about it.

Answers score themselves (`scores`, `compared_with`), or the reporter does. The rest has defaults: a
job without a baseline, or without tables of its own, omits those methods. A job that can be
cross-validated has a `PoolingReporter`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from glassformer.data.samples import Sample
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison
from glassformer.metrics.units import ROWS, Units
from glassformer.reports import Sections, Table

SomeTask = TypeVar("SomeTask")
Answers = TypeVar("Answers")


@dataclass(frozen=True, slots=True)
class Baseline(Generic[Answers]):
    """A simple system, and its answers to the same rows.

    Attributes:
        kind: What it is, in a word or two.
        chosen: The settings chosen on the validation rows, or derived from the data.
        notes: Remarks for the report.
        save: Writes it into a run folder, for `Predictor.baseline`; None if it cannot be kept.
        is_model: What a report says instead of a verdict where the model is this very system.
    """

    kind: str
    chosen: str
    answers: Answers
    notes: Sequence[str] = ()
    save: Callable[[Path], None] | None = None
    is_model: str | None = None

    @property
    def name(self) -> str:
        """Its name in a report."""
        return f"{self.kind} ({self.chosen})"


@dataclass(frozen=True, slots=True)
class Rival(Generic[Answers]):
    """A simple system that a report compares the model with: the baseline, or one beside it.

    Attributes:
        kind: What a sentence calls it.
        name: Its name in the table of scores.
        trivial: Whether it answers without looking at the input.
        is_baseline: Whether it is the baseline of the run.
    """

    kind: str
    name: str
    answers: Answers
    trivial: bool = False
    is_baseline: bool = False


class Reporter(ABC, Generic[SomeTask, Answers]):
    """Reports on an opened task.

    Attributes:
        score_names: The scores that a report may contain.
        compared_unit: What two systems are compared on, one by one: a row, or a piece of text.
        validated_unit: What validation reads, one by one: a row, or a window of a text.
        calibrates: Whether `calibrate` fits something to the validation rows.
        seconds: How long `complete` and `baseline` may take, about; the cheapest of what they try
            runs in any case.
    """

    score_names: ClassVar[Sequence[str]]
    compared_unit: ClassVar[str] = "row"
    validated_unit: ClassVar[str] = "row"
    calibrates: bool = False
    seconds: float = math.inf

    def __init__(self, task: SomeTask) -> None:
        self.task = task

    def scores(self, answers: Answers) -> dict[str, Score]:
        """Scores of the answers, with intervals; the task's goal is among them."""
        return answers.scores()  # type: ignore[attr-defined]

    def compare(self, first: Answers, second: Answers) -> dict[str, Comparison]:
        """How much better the first answers are than the second, on the same rows."""
        return first.compared_with(second)  # type: ignore[attr-defined]

    def units(self, answers: Answers) -> Units:
        """What the rows of these answers are sampled by, for intervals and tests."""
        return getattr(answers, "units", ROWS)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """What answers consist of, such as labels; runs that share it can be compared."""
        return ()

    def remarks(self) -> list[str]:
        """Remarks about the samples before training, such as texts that are truncated."""
        return []

    def notes(self, answers: Answers) -> list[str]:
        """Remarks about the scores of these answers."""
        return []

    def score_tables(self, answers: Answers) -> list[Table]:
        """Scores in more detail, such as by class, for an evaluation."""
        return []

    def sections(self, answers: Answers, samples: Sequence[Sample]) -> Sections:
        """Tables and charts about the answers to these samples."""
        return Sections()

    def baseline(self, split: str) -> Baseline[Answers] | None:
        """A simple system, trained on the same rows and evaluated on the same split.

        A GlassformerError says why there is none, such as a library that is not installed.
        """
        return None

    def rivals(self, answers: Answers, split: str) -> list[Rival[Answers]]:
        """Other simple systems, trained on the same rows, which take next to no time.

        Args:
            answers: Those of the model, to the rows of the split that are scored.
        """
        return []

    def baseline_tables(
        self, ours: Answers, theirs: Answers, samples: Sequence[Sample]
    ) -> list[Table]:
        """Tables that compare the model with the baseline."""
        return []

    def baseline_seconds(self) -> float:
        """Estimated time of the baseline and of slow scores; 0 without a baseline."""
        return 0.0

    def cheapest_seconds(self) -> float:
        """Time of what runs however little time is left, measured on some rows where it is long."""
        return 0.0

    def timed_baseline_seconds(self) -> float:
        """The same, measured on some of the rows where that pays off."""
        return self.baseline_seconds()

    def calibrate(self, answers: Answers) -> None:
        """Fit something to the answers to the validation rows, such as a temperature."""

    def complete(self, answers: Answers) -> list[str]:
        """Add a part to the trained model if that helps on the validation rows, and say so."""
        return []

    def plan_notes(self) -> list[str]:
        """Remarks before training on what `complete` may add."""
        return []

    def decisions(self) -> list[str]:
        """What `complete` decided, or why it decided nothing, for a report."""
        return []

    def parts(self, answers: Answers) -> Mapping[str, Answers]:
        """The answers of parts of the model by themselves, by name; none if it has one part."""
        return {}

    def part_tables(
        self,
        ours: Answers,
        parts: Mapping[str, Answers],
        theirs: Answers,
        samples: Sequence[Sample],
    ) -> list[Table]:
        """Tables on what parts of the model, and a baseline, contribute to its answers."""
        return []


class PoolingReporter(Reporter[SomeTask, Answers]):
    """A reporter that can score the folds of a cross-validation together."""

    @abstractmethod
    def pool(self, answers: Sequence[Answers]) -> Answers:
        """The answers of several models to different rows, concatenated in this order."""
