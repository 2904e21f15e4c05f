"""Which n-grams of texts are counted, and counts as features.

Learning from them takes scikit-learn, which the `baseline` extra brings with scipy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from glassformer.errors import GlassformerError, install

BUCKETS = 2**22
MOST_COLUMNS = 2**21
MANY_ROWS = 1000  # from here on, an n-gram of a single row is left out
SHORT, UNSPACED = 60, 12  # mean characters of a text, and of what stands between two spaces
MOST_ROWS = 100_000  # that a baseline learns from: more would not fit every memory
MOST_CHARACTERS = 5_000_000  # of all texts together, for n-grams of characters to be quick
MOST_TOGETHER = 40_000_000  # for those beside n-grams of words to take a minute and 8 GB
WORDS = r"(?u)\w+|[!?]"

Matrix = Any  # a scipy CSR matrix, (N, F)


@dataclass(frozen=True, slots=True)
class Analyser:
    """What is counted: runs of 1 to `longest` words or characters."""

    unit: str
    longest: int

    def __str__(self) -> str:
        return f"{self.unit} 1-{self.longest}-grams"


def analysers_for(texts: Sequence[str]) -> list[Analyser]:
    """Those worth trying on such texts, the likeliest first.

    Short texts (names) and texts without spaces say more by their characters.
    """
    characters = sum(map(len, texts))
    words = sum(len(text.split()) for text in texts)
    if characters > UNSPACED * words:
        long = characters > MOST_CHARACTERS
        return [Analyser("character", 3 if long else 5), Analyser("word", 2)]
    if characters <= SHORT * len(texts):
        return [Analyser("character", 5), Analyser("word", 2)]
    by_words = [Analyser("word", 2), Analyser("word", 3)]
    return by_words if characters > MOST_CHARACTERS else [*by_words, Analyser("character", 5)]


def combinations_for(texts: Sequence[str], models: int) -> list[tuple[Analyser, ...]]:
    """The same one by one, and words and characters together unless the texts are very many.

    Args:
        models: Linear models that are fitted to them.
    """
    alone = analysers_for(texts)
    found: list[tuple[Analyser, ...]] = [(one,) for one in alone]
    if Analyser("character", 5) in alone:
        return [*found, (Analyser("word", 2), Analyser("character", 5))]
    if alone[0].unit == "word" and models * sum(map(len, texts)) <= MOST_TOGETHER:
        return [*found, (Analyser("word", 3), Analyser("character", 6))]
    return found


def weighted(counts: Matrix, idf: Float[np.ndarray, " F"] | None = None) -> Matrix:
    """1 + log(count), times idf where given, and every row of length 1."""
    weights = scaled_columns(counts, np.ones(counts.shape[1]) if idf is None else idf)
    weights.data *= (1 + np.log(counts.data, dtype=float)) / counts.data
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    weights.data /= np.sqrt(np.bincount(rows, weights.data**2))[rows]
    return weights


def scaled_columns(matrix: Matrix, factors: Float[np.ndarray, " F"]) -> Matrix:
    """The matrix with each column multiplied by its factor; shares all but the values."""
    data = matrix.data * factors[matrix.indices]
    return type(matrix)((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def side_by_side(matrices: Sequence[Matrix]) -> Matrix:
    """One matrix with the columns of all of them."""
    if len(matrices) == 1:
        return matrices[0]
    return sparse().hstack(matrices, format="csr")


def learn(part: str, needing: str = "the baseline needs") -> ModuleType:
    """A part of scikit-learn, or a word on how to get it.

    Args:
        needing: The first words of the error.
    """
    return _of_extra(f"sklearn.{part}", needing)


def sparse() -> ModuleType:
    """Sparse matrices of scipy, which comes with scikit-learn."""
    return _of_extra("scipy.sparse")


def _of_extra(module: str, needing: str = "the baseline needs") -> ModuleType:
    try:
        return import_module(module)
    except ImportError:
        raise GlassformerError(
            f"{needing} scikit-learn, which is not installed; {install('baseline')}"
        ) from None


def rows_learned_from(
    rows: Int[np.ndarray, " rows"], seed: int
) -> tuple[Int[np.ndarray, " some"], list[str]]:
    """These rows, or some of them where there are very many, and a note that says so."""
    if len(rows) <= MOST_ROWS:
        return rows, []
    some = np.sort(np.random.default_rng(seed).permutation(rows)[:MOST_ROWS])
    return some, [f"The baseline learned from {MOST_ROWS:,} of the training rows."]
