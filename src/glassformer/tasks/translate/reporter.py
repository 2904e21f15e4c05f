"""The report of a translator: scores, some rows, by length; a translation memory as baseline."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from jaxtyping import Int

from glassformer.data.ragged import Ragged
from glassformer.data.samples import Sample, Samples
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.metrics.units import pooled
from glassformer.reports import Sections
from glassformer.tasks.reporter import Baseline, PoolingReporter
from glassformer.tasks.shared.ngrams import MOST_ROWS, rows_learned_from
from glassformer.tasks.translate.answers import MEASURES, Translations, missing_line
from glassformer.tasks.translate.sections import Rows, translation_sections
from glassformer.tasks.translate.stored_memory import StoredMemory
from glassformer.tasks.translate.task import TranslateTask

FEW_ROWS = 1000  # that the baseline knows in any case
LOOKED_AT = 500  # rows from which lengths are estimated
TER_SECONDS = 1.3e-6  # per row, times the cube of its words; measured with good answers


class TranslateReporter(PoolingReporter[TranslateTask, Translations]):
    """For sequences to sequences."""

    score_names = (*dict.fromkeys(chain(*MEASURES.values())), "loss")

    def remarks(self) -> list[str]:
        task = self.task
        if task.samples is None:
            return []
        sides = {"target": task.targets}
        if isinstance(task.sources, Ragged):
            sides = {"source": task.sources, **sides}
        scored = [*remarks_on_scores(task.settings.measure, task.pair.target)]
        scored += filter(None, [missing_line(task.settings.measure)])
        return [*remarks_on(task.samples, sides, task.settings.max_length), *scored]

    def notes(self, answers: Translations) -> list[str]:
        return [
            f"{name} by sacreBLEU: {signature}" for name, signature in answers.signatures.items()
        ]

    def sections(self, answers: Translations, samples: Sequence[Sample]) -> Sections:
        texts = [sample["source"] for sample in samples]
        languages = [sample.get("to", "") for sample in samples] if self.task.pair.tags else []
        rows = Rows(
            texts,
            answers.references,
            answers.hypotheses,
            answers.measured,
            self.task.goal,
            languages,
        )
        return translation_sections(rows)

    def pool(self, answers: Sequence[Translations]) -> Translations:
        return Translations(
            [text for some in answers for text in some.hypotheses],
            [right for some in answers for right in some.references],
            answers[0].measure,
            joined([some.nll for some in answers]),
            joined([some.tokens for some in answers]),
            units=pooled(some.units for some in answers),
        )

    def baseline(self, split: str) -> Baseline[Translations]:
        """A translation memory of the training rows, one per target language."""
        if self.task.reads_sequences:
            raise GlassformerError("none for sequences of numbers: it would compare texts")
        samples = self._samples()
        numbers = samples.rows(split).tolist()
        train, notes = rows_learned_from(samples.rows("train"), self.task.config.seed)
        readable = int(min(self.seconds / self.seconds_a_row(len(numbers)), len(train)))
        if len(train) > max(FEW_ROWS, readable):
            train = train[:: -(-len(train) // max(FEW_ROWS, readable))]
            notes = [
                f"The baseline knows {len(train):,} training rows: more take longer than the time "
                f"budget leaves."
            ]
        stored = StoredMemory(
            {
                language: (self.sources(rows), [self.task.right_answers(row)[0] for row in rows])
                for language, rows in self.by_language(train.tolist()).items()
            }
        )
        found, analyser = dict.fromkeys(numbers, ""), ""
        for language, rows in self.by_language(numbers).items():
            if language not in stored.pairs:  # it has no training rows
                continue
            memory = stored.memory(language)
            found |= zip(rows, memory(self.sources(rows)), strict=True)
            analyser = memory.described
        references = [self.task.right_answers(row) for row in numbers]
        answers = Translations(list(found.values()), references, self.task.settings.measure)
        return Baseline("translation memory", analyser, answers, notes, stored.save)

    def baseline_seconds(self) -> float:
        """Every text is compared with every training text; both systems are scored."""
        if self.task.samples is None:
            return 0.0
        test, valid = (self.task.samples.rows(split) for split in ("test", "valid"))
        held_out = test if len(test) else valid
        known = min(len(self.task.samples.rows("train")), MOST_ROWS)
        memory = 1.0 + known * self.seconds_a_row(len(held_out))
        return memory + 2 * self.scoring_seconds(held_out)

    @staticmethod
    def seconds_a_row(held_out: int) -> float:
        """Estimated time of the translation memory for each row that it knows."""
        return 5e-5 + 3e-8 * held_out

    def scoring_seconds(self, rows: Int[np.ndarray, " rows"]) -> float:
        """Estimated time of scoring: TER grows with the cube of the number of words."""
        if self.task.settings.measure != "text" or not len(rows):
            return 0.0
        some = rows[:: max(1, len(rows) // LOOKED_AT)].tolist()
        words = np.array([len(self.task.right_answers(row)[0].split()) for row in some])
        return TER_SECONDS * len(rows) * float((words**3.0).mean())

    def by_language(self, rows: Iterable[int]) -> dict[str, list[int]]:
        """The rows of each target language; under "" if rows name none."""
        samples, found = self._samples(), defaultdict[str, list[int]](list)
        for row in rows:
            found[samples[row].get("to", "") if self.task.pair.tags else ""].append(row)
        return found

    def sources(self, rows: Iterable[int]) -> list[str]:
        """The source texts of some samples, as the translator reads them."""
        samples, clean = self._samples(), self.task.pair.source.clean
        return [clean(samples[row]["source"]) for row in rows]

    def _samples(self) -> Samples:
        assert self.task.samples is not None
        return self.task.samples


def joined(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """The parts concatenated, if none is missing."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def remarks_on(samples: Samples, sides: dict[str, Ragged], longest: int) -> Iterator[str]:
    """Texts that are truncated, and targets that cannot be generated.

    Args:
        sides: The tokens of every sample, by `source` and `target`.
        longest: The maximum number of tokens of a text.
    """
    for side, tokens in sides.items():
        cut = np.flatnonzero(tokens.lengths > longest)
        if len(cut):
            yield (
                f"{len(cut):,} {side} texts have more than task.max_length = "
                f"{longest:,} tokens and are truncated, the first at "
                f"{samples[int(cut[0])]['where']}; the longest has {tokens.lengths.max():,}"
            )
    rows = np.concatenate([samples.rows(split) for split in ("valid", "test")]).tolist()
    unwritable = [row for row in rows if (sides["target"][row] == Tokenizer.unknown).any()]
    if unwritable:
        yield (
            f"{len(unwritable):,} of {len(rows):,} validation and test targets contain something "
            f"outside the vocabulary; the first is {samples[unwritable[0]]['where']}"
        )


def remarks_on_scores(measure: str, target: Tokenizer) -> Iterator[str]:
    """How answers are scored, where that may be unexpected."""
    if measure == "symbols":
        yield (
            "targets look like words spelt in symbols, and are scored as such; if they are "
            "sentences, use --set task.measure=text --set task.target.kind=bpe"
        )
    if target.lowercase:
        yield "answers are in lower case, but are scored against targets in their original case"
