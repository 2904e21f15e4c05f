"""Texts as counts of their n-grams.

N-grams are hashed into a fixed number of columns, so that neither a dictionary of millions of
strings nor the size of the texts decides how much memory it takes.
"""

from collections.abc import Sequence

import numpy as np

from glassformer.tasks.shared.ngram_spans import buckets_of_spans, chunks, spans_of
from glassformer.tasks.shared.ngrams import (
    BUCKETS,
    MANY_ROWS,
    MOST_COLUMNS,
    Analyser,
    Matrix,
    sparse,
)


class NgramCounts:
    """The n-grams that occur in the training texts, and their counts in any texts.

    Args:
        columns: The most n-grams to keep; those of the most rows stay.
    """

    def __init__(
        self, analyser: Analyser, texts: Sequence[str], columns: int = MOST_COLUMNS
    ) -> None:
        self.analyser = analyser
        counts = hashed(texts, analyser)
        rows_with = np.bincount(counts.indices, minlength=BUCKETS)
        kept = np.flatnonzero(rows_with >= (2 if len(texts) >= MANY_ROWS else 1))
        if len(kept) > columns:
            most = np.argsort(-rows_with[kept], kind="stable")[:columns]
            kept = np.sort(kept[most])
        self.columns = kept
        self.training = counts[:, kept]
        # Smoothed as in scikit-learn: as if one more text held everything once.
        self.idf = np.log((1 + len(texts)) / (1 + rows_with[kept])) + 1

    def __call__(self, texts: Sequence[str]) -> Matrix:
        return hashed(texts, self.analyser)[:, self.columns]


def hashed(texts: Sequence[str], analyser: Analyser) -> Matrix:
    """Counts of all n-grams, one column a bucket."""
    counts = [_counted(some, analyser) for some in chunks(texts)] or [_counted([], analyser)]
    return sparse().vstack(counts, format="csr")


def _counted(texts: Sequence[str], analyser: Analyser) -> Matrix:
    spans = spans_of(texts, analyser)
    places = spans.text_of, buckets_of_spans(spans)
    return sparse().csr_matrix(
        (np.ones(len(places[0]), dtype=np.float32), places), shape=(len(texts), BUCKETS)
    )
