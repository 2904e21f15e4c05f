"""The report on labels, whatever was read: scores by class, confusions, calibration."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from glassformer.data.rows import listed
from glassformer.data.samples import Sample, Samples
from glassformer.metrics.calibration import fit_temperature
from glassformer.metrics.classification import FEW_TO_CHOOSE, THRESHOLD, choose_threshold
from glassformer.metrics.units import pooled
from glassformer.reports import Sections, Table
from glassformer.reports.tables import in_natural_order
from glassformer.tasks.reporter import PoolingReporter, Rival
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_sections import (
    FEW,
    class_table,
    classification_sections,
    side_by_side,
)
from glassformer.tasks.shared.label_task import LabelTask
from glassformer.tasks.shared.labels import Labels

SomeTask = TypeVar("SomeTask", bound=LabelTask)


class LabelReporter(PoolingReporter[SomeTask, ClassAnswers]):
    """For inputs with one label or several."""

    score_names = ("accuracy", "macro_f1", "micro_f1", "calibration_error")
    calibrates = True

    @property
    def vocabulary(self) -> tuple[str, ...]:
        labels = self.task.labels
        return (*labels.names, "several per text" if labels.multi else "one per text")

    def remarks(self) -> list[str]:
        return self.task.remarks

    def notes(self, answers: ClassAnswers) -> list[str]:
        """The classes that have too few rows to be scored by themselves."""
        labels, names = answers.labels, self.task.labels.names
        rows = labels.sum(axis=0) if answers.multi else np.bincount(labels, minlength=len(names))
        few = [f"{names[n]!r} ({rows[n]})" for n in np.flatnonzero(rows < FEW).tolist()]
        if not few:
            return []
        noun = "label has" if len(few) == 1 else "labels have"
        return [
            f"{len(few):,} {noun} fewer than {FEW} scored rows: {listed(few)}; scores of such a "
            f"label mean little, and have no interval."
        ]

    def score_tables(self, answers: ClassAnswers) -> list[Table]:
        given = answers.predictions()
        return [class_table(answers.labels, given, self.task.labels.names, answers.units)]

    def sections(self, answers: ClassAnswers, samples: Sequence[Sample]) -> Sections:
        names, noun = self.task.labels.names, self.task.inputs.noun
        shown, chances = self._shown(samples), answers.probabilities()
        found = classification_sections(
            answers.labels, chances, names, shown, noun, answers.threshold, answers.units
        )
        return in_natural_order(found)

    def baseline_tables(
        self, ours: ClassAnswers, theirs: ClassAnswers, samples: Sequence[Sample]
    ) -> list[Table]:
        first = ours.probabilities(), ours.predictions()
        second = theirs.probabilities(), theirs.predictions()
        names, noun = self.task.labels.names, self.task.inputs.noun
        return [side_by_side(ours.labels, first, second, names, self._shown(samples), noun)]

    def rivals(self, answers: ClassAnswers, split: str) -> list[Rival[ClassAnswers]]:
        """Always the most frequent label, or set of labels, of the training rows."""
        samples, label_ids = self._data()
        train, names = label_ids[samples.rows("train")], self.task.labels.names
        if answers.multi:
            sets, counts = np.unique(train, axis=0, return_counts=True)
            chances = sets[counts.argmax()].astype(np.float64)
            label = " and ".join(repr(names[n]) for n in np.flatnonzero(chances)) or "none"
            noun = "most frequent set of labels"
        else:
            chances = np.bincount(train, minlength=len(names)) / len(train)
            label, noun = repr(names[int(chances.argmax())]), "most frequent label"
        every = np.tile(chances, (len(answers.labels), 1))
        constant = ClassAnswers.of_probabilities(every, answers.labels)
        kind = f"always answering {label}, the {noun}"
        return [Rival(kind, f"always the {noun} ({label})", constant, trivial=True)]

    def calibrate(self, answers: ClassAnswers) -> None:
        """Fit the temperature at which confidence matches accuracy, and choose the threshold."""
        temperature = fit_temperature(answers.raw, answers.labels)
        self._keep(temperature=temperature)
        self._keep(threshold=self._threshold(answers.without_ngrams().at(temperature)))

    def _keep(self, **found: Any) -> None:
        """Store what was fitted to the validation rows with the labels."""
        task = self.task
        task.labels = replace(task.labels, **found)
        task.labels.save(task.folder / "labels.json")

    def _threshold(self, answers: ClassAnswers) -> float:
        """The threshold that is set, or that suits these answers to the validation rows."""
        fixed = self.task.settings.threshold
        if fixed is not None:
            return float(fixed)
        return choose_threshold(answers.labels, answers.probabilities())

    def _choose_for_baseline(self, answers: ClassAnswers) -> None:
        """Choose the threshold of the baseline by its answers to the validation rows."""
        if answers.multi:
            self._keep(baseline_threshold=self._threshold(answers))

    def decisions(self) -> list[str]:
        """The thresholds, where an input may have several labels."""
        labels = self.task.labels
        return [threshold_sentence(labels, self.task.settings.threshold)] if labels.multi else []

    def pool(self, answers: Sequence[ClassAnswers]) -> ClassAnswers:
        return ClassAnswers(
            np.concatenate([some.logits for some in answers]),
            np.concatenate([some.labels for some in answers]),
            threshold=np.concatenate(
                [np.broadcast_to(some.threshold, (len(some.labels), 1)) for some in answers]
            ),
            units=pooled(some.units for some in answers),
        )

    def _data(self) -> tuple[Samples, np.ndarray]:
        assert self.task.samples is not None
        return self.task.samples, self.task.label_ids

    def _shown(self, samples: Sequence[Sample]) -> list[str]:
        return [self.task.inputs.shown(sample) for sample in samples]


def threshold_sentence(labels: Labels, fixed: float | None) -> str:
    """From which probability on labels are predicted, and why from there.

    Args:
        fixed: The setting, if there is one.
    """
    if fixed is not None:
        return f"A label is predicted from a probability of {fixed:g} on, as task.threshold says."
    if labels.threshold == labels.baseline_threshold == THRESHOLD:
        return (
            f"A label is predicted from a probability of {THRESHOLD:g} on; {FEW_TO_CHOOSE} or more "
            f"validation rows may choose another threshold, and task.threshold sets one."
        )
    return (
        f"A label is predicted from a probability of {labels.threshold:g} on, by the baseline from "
        f"{labels.baseline_threshold:g} on: the sum of accuracy and micro-F1 on the validation "
        f"rows chose these thresholds (task.threshold sets one)."
    )
