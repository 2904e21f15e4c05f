"""How good `listen` is: letters and words that are wrong; the most frequent word beside it."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from glassformer.data.samples import Sample
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison
from glassformer.metrics.translation import translation_comparison, translation_scores
from glassformer.reports import Sections, Table
from glassformer.reports.record import SOME_ROWS
from glassformer.tasks.reporter import Baseline, Reporter
from tones.task import ListenTask
from tones.words import Words

SHOWN = 5


class ListenReporter(Reporter[ListenTask, Words]):
    """For words."""

    score_names = ("cer", "exact")

    def scores(self, answers: Words) -> dict[str, Score]:
        return translation_scores(answers.measurements)

    def compare(self, first: Words, second: Words) -> dict[str, Comparison]:
        return translation_comparison(first.measurements, second.measurements)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(self.task.alphabet)

    def sections(self, answers: Words, samples: Sequence[Sample]) -> Sections:
        names = [Path(sample["path"]).name for sample in samples]
        rows = list(zip(names, answers.right, answers.written, strict=True))[:SHOWN]
        return Sections(
            tables=[Table(title=SOME_ROWS, header=("recording", "word", "written"), rows=rows)]
        )

    def baseline(self, split: str) -> Baseline[Words]:
        samples = self.task.samples
        assert samples is not None
        [(word, _)] = Counter(sample["text"] for sample in samples.of("train")).most_common(1)
        right = [sample["text"] for sample in samples.of(split)]
        return Baseline("most frequent word", word, Words([word] * len(right), right))

    def baseline_seconds(self) -> float:
        return 0.1
