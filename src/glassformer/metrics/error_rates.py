"""How much of an answer is wrong: whole answers, and edits by word, character or symbol.

An answer is right when it equals any of its references. Its edits (Levenshtein, 1965) are those to
the closest reference, and a rate is edits over the length of that reference, both summed over rows.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial

import numpy as np

from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Groups, ratio
from glassformer.metrics.measured import Measured, References, Texts, check_rows
from glassformer.metrics.ratios import rate_score, share_score
from glassformer.metrics.score import Score

Units = Callable[[str], Sequence[Hashable]]


def exact(answers: Texts, references: References) -> Measured:
    """The share of rows that equal one of their references, blanks at the ends aside."""
    return _share(_right(answers, references), higher_is_better=True)


def wrong(answers: Texts, references: References) -> Measured:
    """The share of rows that equal none: the word error rate, where a row is a word."""
    return _share(~_right(answers, references), higher_is_better=False)


def edit_rate(answers: Texts, references: References, *, units: Units) -> Measured:
    """Edits over the units of the closest reference.

    >>> rate = edit_rate(["a b d"], [["a b c", "x"]], units=str.split)
    >>> rate.rows
    array([[1., 3.]])
    """
    check_rows(answers, references)
    distance = _levenshtein()
    rows = []
    for answer, right in zip(answers, references, strict=True):
        said = units(answer)
        meant = [units(reference) for reference in right]
        edits, shorter = min((distance(said, one), -len(one)) for one in meant)
        rows.append((edits, -shorter))
    return _by_columns(
        np.array(rows, dtype=np.float64), higher_is_better=False, interval=rate_score
    )


def characters(text: str) -> str:
    """The units of a text that is counted letter by letter, blanks at the ends aside."""
    return text.strip()


word_errors = partial(edit_rate, units=str.split)
character_errors = partial(edit_rate, units=characters)


def _right(answers: Texts, references: References) -> np.ndarray:
    check_rows(answers, references)
    pairs = zip(answers, references, strict=True)
    return np.array([a.strip() in {one.strip() for one in right} for a, right in pairs])


def _share(counted: np.ndarray, *, higher_is_better: bool) -> Measured:
    rows = np.stack([counted, np.ones(len(counted))], axis=1).astype(np.float64)
    return _by_columns(rows, higher_is_better=higher_is_better, interval=share_score)


def _by_columns(
    rows: np.ndarray, *, higher_is_better: bool, interval: Callable[..., Score]
) -> Measured:
    """The sum of the first column over that of the second."""

    def rate(sums: np.ndarray) -> np.ndarray:
        return ratio(sums[:, 0], sums[:, 1])

    def score(rows: np.ndarray, groups: Groups | None) -> Score:
        return interval(rows[:, 0], rows[:, 1], groups=groups)

    return Measured(rows, rate, rate, higher_is_better, interval=score)


def _levenshtein() -> Callable[[Sequence[Hashable], Sequence[Hashable]], int]:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise GlassformerError(
            "error rates need rapidfuzz, which is not installed; pip install "
            "'glassformer[translate]'"
        ) from None
    return Levenshtein.distance
