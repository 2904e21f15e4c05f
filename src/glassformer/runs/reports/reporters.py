"""What a job's report shows besides scores and curves, and the baseline it stands beside.

To report on another job, write a Reporter and list it in REPORTERS.
"""

from abc import ABC, abstractmethod
from typing import Any

from glassformer.errors import GlassformerError
from glassformer.reports import Sections, Table
from glassformer.runs.reports import baselines
from glassformer.tasks.classify.answers import ClassAnswers
from glassformer.tasks.classify.sections import classification_sections, side_by_side
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.tasks.translate.answers import Translations
from glassformer.tasks.translate.sections import Rows, translation_sections
from glassformer.tasks.translate.task import TranslateTask

BASELINE_TRY = 3.0  # seconds, about, that the baseline is tried for


class Reporter(ABC):
    """Says what a report holds about one job. Only `sections` is asked of all."""

    @abstractmethod
    def sections(self, job: Any, answers: Any, part: str) -> Sections:
        """Tables and pictures about the answers to a part."""

    def notes(self, answers: Any) -> list[str]:
        """What to know about the scores of these answers."""
        return []

    def baseline(self, job: Any, part: str, notes: list[str]) -> tuple[str, Any]:
        """The name and the answers of an honest baseline, if there is one; it may add notes."""
        return "", None

    def beside(self, job: Any, ours: Any, theirs: Any, part: str) -> list[Table]:
        """Tables of the model beside the baseline."""
        return []

    def baseline_seconds(self, job: Any) -> float:
        """About how long the baseline will take, and scores that take long."""
        return 0.0

    def measured_baseline(self, job: Any) -> float:
        """How long the baseline will take, from a try."""
        return 0.0


class NothingMore(Reporter):
    """For a job whose scores say all."""

    def sections(self, job: Any, answers: Any, part: str) -> Sections:
        return Sections()


class ClassReporter(Reporter):
    """For classifiers: scores by class, confusions, mistakes; n-grams as the baseline."""

    def sections(self, job: ClassifyTask, answers: ClassAnswers, part: str) -> Sections:
        assert job.samples is not None
        names, texts = job.labels.names, job.samples.texts(part)
        return classification_sections(answers.labels, answers.probabilities(), names, texts)

    def baseline(
        self, job: ClassifyTask, part: str, notes: list[str]
    ) -> tuple[str, ClassAnswers | None]:
        return baselines.ngram_baseline(job, part, notes)

    def beside(
        self, job: ClassifyTask, ours: ClassAnswers, theirs: ClassAnswers, part: str
    ) -> list[Table]:
        assert job.samples is not None
        said, texts = (ours.probabilities(), theirs.probabilities()), job.samples.texts(part)
        return [side_by_side(ours.labels, *said, job.labels.names, texts)]

    def baseline_seconds(self, job: ClassifyTask) -> float:
        """It reads every n-gram once a label, some times."""
        if job.samples is None:
            return 0.0
        megabytes = float(job.samples.records.rows.lengths.sum()) / 1e6
        labels = len(job.labels.names)
        return 2.0 + 1.5 * megabytes * (1 if labels == 2 else 0.5 * labels)

    def measured_baseline(self, job: ClassifyTask) -> float:
        """From a share of its rows: it grows with them."""
        if job.samples is None:
            return 0.0
        every = max(1, round(self.baseline_seconds(job) / BASELINE_TRY))
        rows = {part: job.samples.rows(part)[::every] for part in ("train", "valid")}
        try:
            return every * baselines.fit_ngrams(job, rows).seconds
        except GlassformerError:  # scikit-learn is not installed: there will be none
            return 0.0


class TranslationReporter(Reporter):
    """For translators: rows, the worst ones, lengths, and how the scores are to be repeated."""

    def sections(self, job: TranslateTask, answers: Translations, part: str) -> Sections:
        assert job.samples is not None
        texts = job.samples.texts(part, "source")
        languages = job.samples.texts(part, "to") if job.pair.tags else []
        rows = Rows(texts, answers.meant, answers.said, answers.measured, job.goal, languages)
        return translation_sections(rows)

    def baseline(
        self, job: TranslateTask, part: str, notes: list[str]
    ) -> tuple[str, Translations | None]:
        return baselines.memory_baseline(job, part, notes)

    def baseline_seconds(self, job: TranslateTask) -> float:
        """Every text asked for is held against every training text; both are scored."""
        if job.samples is None:
            return 0.0
        test, valid = (job.samples.rows(part) for part in ("test", "valid"))
        held_out = test if len(test) else valid
        known = len(job.samples.rows("train"))
        scoring = baselines.scoring_seconds(job, held_out)
        return baselines.memory_seconds(known, len(held_out)) + 2 * scoring

    def measured_baseline(self, job: TranslateTask) -> float:
        return self.baseline_seconds(job)

    def notes(self, answers: Translations) -> list[str]:
        return [f"{name} by sacreBLEU: {said}" for name, said in answers.signatures.items()]


REPORTERS: dict[str, Reporter] = {
    "classify": ClassReporter(),
    "translate": TranslationReporter(),
}


def reporter_of(job: str) -> Reporter:
    """Who reports on a job."""
    return REPORTERS.get(job, NothingMore())
