"""The report of `recognise`: that of any labels, beside a logistic regression on pixels."""

from glassformer.tasks.recognise.pixel_baseline import (
    FEW,
    STRENGTHS,
    PixelBaseline,
    chosen_rows,
    seconds_of_few,
)
from glassformer.tasks.recognise.task import RecogniseTask
from glassformer.tasks.reporter import Baseline
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_reporter import LabelReporter

MOST_ROWS = 20_000  # that the baseline learns from
SECONDS_A_VALUE = 3e-7  # of the baseline, about, for each pixel of a training row and each label


class RecogniseReporter(LabelReporter[RecogniseTask]):
    """For images with one label or several."""

    def baseline(self, split: str) -> Baseline[ClassAnswers]:
        """A linear model of pixels, on the same splits as ours."""
        samples, label_ids = self._data()
        images, numbers = self.task.inputs.images, samples.rows(split)
        train = chosen_rows(samples.rows("train"), MOST_ROWS, self.task.config.seed)
        valid = samples.rows("valid")
        fitted = PixelBaseline.fit(
            *(images[train], label_ids[train], images[valid], label_ids[valid]),
            self.task.classes,
            self.seconds,
        )
        if self.task.labels.multi and len(valid):
            self._choose_for_baseline(
                ClassAnswers.of_probabilities(fitted.probabilities(images[valid]), label_ids[valid])
            )
        threshold = self.task.labels.baseline_threshold
        answers = ClassAnswers.of_probabilities(
            fitted.probabilities(images[numbers]), label_ids[numbers], threshold
        )
        most = len(samples.rows("train"))
        notes = [f"The baseline learned from {fitted.rows:,} of {most:,} training rows."]
        if fitted.rows < len(train):
            notes.append("All of them would take longer than the time budget leaves.")
        few = most > fitted.rows
        chosen = f"logistic regression, C = {fitted.strength:g}"
        return Baseline("pixels", chosen, answers, notes if few else [], fitted.save)

    def cheapest_seconds(self) -> float:
        """Fits to a few rows: one to measure how long it takes, one of each strength, the last."""
        if self.task.samples is None:
            return 0.0
        samples, label_ids = self._data()
        some = chosen_rows(samples.rows("train"), FEW, self.task.config.seed)
        few = seconds_of_few(self.task.inputs.images[some], label_ids[some], self.task.classes)
        return (len(STRENGTHS) + 2) * few

    def baseline_seconds(self) -> float:
        """It goes through all pixels of some rows, many times."""
        if self.task.samples is None:
            return 0.0
        rows = min(MOST_ROWS, len(self.task.samples.rows("train")))
        values = rows * self.task.inputs.images[0].size * self.task.classes
        return 1.0 + SECONDS_A_VALUE * values
