"""The baseline of translation: a translation memory, as professional translators use it.

It answers with the translation of the most similar training text, by the cosine similarity of
their n-grams weighted with tf-idf. Its score is what memorising the training rows is worth, so a
report shows it next to the model's. Very common n-grams distinguish texts poorly and take the most
time, so they are left out. Only the beginning of a very long text, which no model reads to its end
either, is stored and compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from glassformer.tasks.shared.ngram_counts import NgramCounts
from glassformer.tasks.shared.ngrams import MANY_ROWS, Matrix, analysers_for, weighted

LONGEST = 10_000  # characters of a text, far more than the tokens that a model reads
TOGETHER = 256  # texts per lookup
COMMON = 0.2  # n-grams in a larger share of the texts are left out


@dataclass(frozen=True, slots=True)
class TranslationMemory:
    """Texts with their translations, looked up by similarity.

    Attributes:
        kept: The columns of the counts that are compared.
        sources: The stored texts, in these columns.
    """

    counts: NgramCounts
    kept: Int[np.ndarray, " columns"]
    sources: Matrix
    targets: Sequence[str]

    @staticmethod
    def of(sources: Sequence[str], targets: Sequence[str]) -> "TranslationMemory":
        """Store these texts, at least one."""
        sources, targets = (cut(texts) for texts in (sources, targets))
        counts = NgramCounts(analysers_for(sources)[0], sources)
        rows_with = np.bincount(counts.training.indices, minlength=counts.training.shape[1])
        most = COMMON * len(sources) if len(sources) >= MANY_ROWS else len(sources)
        kept = np.flatnonzero(rows_with <= most)
        weights = weighted(counts.training[:, kept], counts.idf[kept])
        return TranslationMemory(counts, kept, weights, targets)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """For each text, the translation of the most similar stored text, the first of several."""
        found: list[str] = []
        for start in range(0, len(texts), TOGETHER):
            similarity = self.similarity(texts[start : start + TOGETHER])
            nearest = np.asarray(similarity.argmax(axis=1)).ravel()
            found += [self.targets[row] for row in nearest.tolist()]
        return found

    def similarity(self, texts: Sequence[str]) -> Matrix:
        """How similar each text is to each stored one, from 0 to 1."""
        queried = self.counts(cut(texts))[:, self.kept]
        return weighted(queried, self.counts.idf[self.kept]) @ self.sources.T

    @property
    def described(self) -> str:
        """What texts are compared by."""
        return str(self.counts.analyser)


def cut(texts: Sequence[str]) -> list[str]:
    """The beginnings of texts."""
    return [text[:LONGEST] for text in texts]
