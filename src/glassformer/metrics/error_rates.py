"""Exact matches and edit rates, by word, character or symbol.

An answer is right if it equals one of its references. Its edits (Levenshtein, 1965) are counted to
the closest reference; a rate is edits over the length of that reference, both summed over rows.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial

import numpy as np

from glassformer.errors import GlassformerError, install
from glassformer.metrics.intervals import Score, ratio
from glassformer.metrics.measurement import Measurement, References, Texts, check_rows
from glassformer.metrics.ratios import rate_score, share_score
from glassformer.metrics.units import Units

Pieces = Callable[[str], Sequence[Hashable]]


def exact_match(answers: Texts, references: References) -> Measurement:
    """The share of answers that equal one of their references, apart from surrounding blanks."""
    return _share(_right(answers, references), higher_is_better=True)


def mismatch(answers: Texts, references: References) -> Measurement:
    """The share of answers that equal none: the word error rate, if a row is a word."""
    return _share(~_right(answers, references), higher_is_better=False)


def edit_rate(answers: Texts, references: References, *, units: Pieces) -> Measurement:
    """Edits over the length of the closest reference, in units.

    >>> rate = edit_rate(["a b d"], [["a b c", "x"]], units=str.split)
    >>> rate.rows
    array([[1., 3.]])
    """
    check_rows(answers, references)
    distance = _levenshtein()
    rows = []
    for answer, right in zip(answers, references, strict=True):
        hypothesis = units(answer)
        choices = [units(reference) for reference in right]
        edits, negative = min((distance(hypothesis, one), -len(one)) for one in choices)
        rows.append((edits, -negative))  # of equally close references, the longest
    return _by_columns(
        np.array(rows, dtype=np.float64), "rate", higher_is_better=False, interval=rate_score
    )


def characters(text: str) -> str:
    """The characters of a text, without surrounding blanks."""
    return text.strip()


word_error_rate = partial(edit_rate, units=str.split)
character_error_rate = partial(edit_rate, units=characters)


def _right(answers: Texts, references: References) -> np.ndarray:
    check_rows(answers, references)
    pairs = zip(answers, references, strict=True)
    return np.array([a.strip() in {one.strip() for one in right} for a, right in pairs])


def _share(counted: np.ndarray, *, higher_is_better: bool) -> Measurement:
    rows = np.stack([counted, np.ones(len(counted))], axis=1).astype(np.float64)
    return _by_columns(rows, "share", higher_is_better=higher_is_better, interval=share_score)


def _by_columns(
    rows: np.ndarray, kind: str, *, higher_is_better: bool, interval: Callable[..., Score]
) -> Measurement:
    """The sum of the first column over the sum of the second."""

    def rate(sums: np.ndarray) -> np.ndarray:
        return ratio(sums[:, 0], sums[:, 1])

    def score(rows: np.ndarray, units: Units) -> Score:
        return interval(rows[:, 0], rows[:, 1], units=units)

    return Measurement(rows, rate, rate, higher_is_better, kind, interval=score)


def _levenshtein() -> Callable[[Sequence[Hashable], Sequence[Hashable]], int]:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise GlassformerError(
            f"error rates need rapidfuzz, which is not installed; {install('translate')}"
        ) from None
    return Levenshtein.distance
