"""The honest baseline of translation: a translation memory, as translators by trade use it.

It answers with the translation of the training text that is most like the one asked for, by the
cosine of their n-grams weighted with tf-idf. What it scores is what knowing the training rows by
heart is worth, so a report shows it beside our model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.evaluation.ngrams import Matrix, NgramCounts, analysers_for, weighted

TOGETHER = 256  # texts looked up at a time


@dataclass(frozen=True, slots=True)
class TranslationMemory:
    """Texts with their translations, to be looked up by likeness."""

    counts: NgramCounts
    sources: Matrix
    targets: Sequence[str]

    @staticmethod
    def of(sources: Sequence[str], targets: Sequence[str]) -> "TranslationMemory":
        """Remember these texts, at least one."""
        counts = NgramCounts(analysers_for(sources)[0], sources)
        return TranslationMemory(counts, weighted(counts.training, counts.idf), targets)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The translation of the most similar text, the first of several; for each text."""
        found: list[str] = []
        for start in range(0, len(texts), TOGETHER):
            asked = weighted(self.counts(texts[start : start + TOGETHER]), self.counts.idf)
            nearest = (asked @ self.sources.T).argmax(axis=1)
            found += [self.targets[row] for row in np.asarray(nearest).ravel().tolist()]
        return found

    @property
    def described(self) -> str:
        """What likeness goes by."""
        return str(self.counts.analyser)
