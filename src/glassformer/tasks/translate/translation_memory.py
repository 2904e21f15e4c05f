"""The honest baseline of translation: a translation memory, as translators by trade use it.

It answers with the translation of the training text that is most like the one to translate, by the
cosine of their n-grams weighted with tf-idf. What it scores is what knowing the training rows by
heart is worth, so a report shows it beside our model. N-grams that very many texts have tell them
apart little and take the most time, so they are left out. Of a very long text, which no model reads
to its end either, the beginning is compared and remembered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from glassformer.tasks.shared.ngrams import MANY_ROWS, Matrix, NgramCounts, analysers_for, weighted

LONGEST = 10_000  # characters of a text, far more than the tokens that a model reads
TOGETHER = 256  # texts looked up at a time
COMMON = 0.2  # share of the texts that have an n-gram that is left out


@dataclass(frozen=True, slots=True)
class TranslationMemory:
    """Texts with their translations, to be looked up by likeness.

    Attributes:
        telling: The columns of the counts that are compared.
        sources: The texts that are remembered, in these columns.
    """

    counts: NgramCounts
    telling: Int[np.ndarray, " columns"]
    sources: Matrix
    targets: Sequence[str]

    @staticmethod
    def of(sources: Sequence[str], targets: Sequence[str]) -> "TranslationMemory":
        """Remember these texts, at least one."""
        sources, targets = (cut(texts) for texts in (sources, targets))
        counts = NgramCounts(analysers_for(sources)[0], sources)
        rows_with = np.bincount(counts.training.indices, minlength=counts.training.shape[1])
        most = COMMON * len(sources) if len(sources) >= MANY_ROWS else len(sources)
        telling = np.flatnonzero(rows_with <= most)
        weights = weighted(counts.training[:, telling], counts.idf[telling])
        return TranslationMemory(counts, telling, weights, targets)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The translation of the most similar text, the first of several; for each text."""
        found: list[str] = []
        for start in range(0, len(texts), TOGETHER):
            queried = self.counts(cut(texts[start : start + TOGETHER]))[:, self.telling]
            likeness = weighted(queried, self.counts.idf[self.telling]) @ self.sources.T
            nearest = np.asarray(likeness.argmax(axis=1)).ravel()
            found += [self.targets[row] for row in nearest.tolist()]
        return found

    @property
    def described(self) -> str:
        """What likeness goes by."""
        return str(self.counts.analyser)


def cut(texts: Sequence[str]) -> list[str]:
    """The beginnings of texts."""
    return [text[:LONGEST] for text in texts]
