"""The report of a classifier: scores by class, confusions, calibration, an n-gram baseline."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from torch import nn

from glassformer.data.samples import Sample, Samples
from glassformer.errors import GlassformerError
from glassformer.metrics.calibration import fit_temperature
from glassformer.metrics.paired import Comparison
from glassformer.metrics.score import Score
from glassformer.reports import Sections, Table
from glassformer.tasks.classify.answers import ClassAnswers
from glassformer.tasks.classify.ngram_baseline import TUNED_ON, NgramBaseline
from glassformer.tasks.classify.sections import classification_sections, side_by_side
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.tasks.reporter import Baseline, PoolingReporter
from glassformer.tasks.shared.batches import TextBatch
from glassformer.tasks.shared.ngrams import MOST_ROWS, rows_learned_from

BASELINE_TRY = 3.0  # seconds, about, of a timed trial of the baseline
TRIALS = 5  # settings that the baseline tries, about


class ClassifyReporter(PoolingReporter[ClassifyTask, ClassAnswers]):
    """For texts with one label or several."""

    score_names = ("accuracy", "macro_f1", "micro_f1", "calibration_error")
    calibrates = True

    def answers(self, model: nn.Module, batches: Iterable[TextBatch]) -> ClassAnswers:
        return self.task.answers(model, batches)

    def scores(self, answers: ClassAnswers) -> dict[str, Score]:
        return answers.scores()

    def compare(self, first: ClassAnswers, second: ClassAnswers) -> dict[str, Comparison]:
        return first.compared_with(second)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        labels = self.task.labels
        return (*labels.names, "several per text" if labels.multi else "one per text")

    def sections(self, answers: ClassAnswers, samples: Sequence[Sample]) -> Sections:
        names, texts = self.task.labels.names, texts_of(samples)
        return classification_sections(answers.labels, answers.probabilities(), names, texts)

    def baseline_tables(
        self, ours: ClassAnswers, theirs: ClassAnswers, samples: Sequence[Sample]
    ) -> list[Table]:
        both = ours.probabilities(), theirs.probabilities()
        return [side_by_side(ours.labels, *both, self.task.labels.names, texts_of(samples))]

    def calibrate(self, answers: ClassAnswers) -> None:
        """Fit the temperature at which confidence matches accuracy."""
        task = self.task
        temperature = fit_temperature(answers.raw, answers.labels)
        task.labels = replace(task.labels, temperature=temperature)
        task.labels.save(task.folder / "labels.json")

    def pool(self, answers: Sequence[ClassAnswers]) -> ClassAnswers:
        return ClassAnswers(
            np.concatenate([some.logits for some in answers]),
            np.concatenate([some.labels for some in answers]),
        )

    def baseline(self, split: str) -> Baseline[ClassAnswers]:
        """N-grams and a linear model, trained and tuned on the same splits as ours."""
        samples, label_ids = self._data()
        train, notes = rows_learned_from(samples, self.task.config.seed)
        numbers = samples.rows(split)
        fitted = self.fit_ngrams({"train": train, "valid": samples.rows("valid")})
        chances = fitted.probabilities([samples[row]["text"] for row in numbers])
        answers = ClassAnswers.of_probabilities(chances, label_ids[numbers])
        return Baseline("n-grams", fitted.described, answers, notes)

    def fit_ngrams(self, rows: Mapping[str, np.ndarray]) -> NgramBaseline:
        """The baseline, trained on some rows of train and tuned on some of valid."""
        samples, label_ids = self._data()
        train, valid = (
            ([samples[row]["text"] for row in rows[split]], label_ids[rows[split]])
            for split in ("train", "valid")
        )
        return NgramBaseline.fit(*train, *valid, len(self.task.labels.names))

    def baseline_seconds(self) -> float:
        """It reads every n-gram several times per label."""
        if self.task.samples is None:
            return 0.0
        megabytes = float(self.task.samples.records.rows.lengths.sum()) / 1e6
        labels = len(self.task.labels.names)
        return 2.0 + 1.5 * megabytes * (1 if labels == 2 else 0.5 * labels)

    def timed_baseline_seconds(self) -> float:
        """Extrapolated from a share of the rows: tuning grows with them up to a limit."""
        if self.task.samples is None:
            return 0.0
        every = max(1, round(self.baseline_seconds() / BASELINE_TRY))
        rows = {split: self.task.samples.rows(split)[::every] for split in ("train", "valid")}
        tried, learned = len(rows["train"]), min(MOST_ROWS, len(self.task.samples.rows("train")))
        times = learned / tried if learned <= TUNED_ON else (TUNED_ON + learned / TRIALS) / tried
        try:
            return max(1.0, times) * self.fit_ngrams(rows).seconds
        except GlassformerError:  # without scikit-learn there is no baseline
            return 0.0

    def _data(self) -> tuple[Samples, np.ndarray]:
        assert self.task.samples is not None
        return self.task.samples, self.task.label_ids


def texts_of(samples: Sequence[Sample]) -> list[str]:
    """The texts of samples."""
    return [sample["text"] for sample in samples]
