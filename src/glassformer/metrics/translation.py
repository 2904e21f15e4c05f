"""How good translations are: scores with intervals, and whether one system is better.

A row has an answer and one or several references. In TEXT_MEASURES rows are sentences; in
SYMBOL_MEASURES a row is one word, spelt in symbols with blanks between (phonemes, say), so that a
wrong row is a wrong word. To add a score, write a function from answers and references to a
Measured, and list it.
"""

from collections.abc import Mapping

import numpy as np

from glassformer.metrics.error_rates import character_errors, exact, word_errors, wrong
from glassformer.metrics.intervals import Groups
from glassformer.metrics.measured import Measure, Measured, References, Texts
from glassformer.metrics.paired import Comparison, paired_test, randomisation_test
from glassformer.metrics.sacre import bleu, chrf, ter
from glassformer.metrics.score import Score

TEXT_MEASURES: dict[str, Measure] = {
    "bleu": bleu,
    "chrf": chrf,
    "ter": ter,
    "exact": exact,
    "wer": word_errors,
    "cer": character_errors,
}
SYMBOL_MEASURES: dict[str, Measure] = {"exact": exact, "wer": wrong, "ser": word_errors}


def measure_translations(
    answers: Texts, references: References, measures: Mapping[str, Measure] = TEXT_MEASURES
) -> dict[str, Measured]:
    """The answers, measured row by row, with the signatures of those scores that have one."""
    return {name: measure(answers, references) for name, measure in measures.items()}


def translation_scores(
    measured: Mapping[str, Measured], groups: Groups | None = None
) -> dict[str, Score]:
    """Each score with its interval: bleu, chrf and ter are percentages, the others shares of 1.

    >>> said, meant = ["R EH D", "T AA B"], [["R EH D", "R IY D"], ["T AA P"]]
    >>> scores = translation_scores(measure_translations(said, meant, SYMBOL_MEASURES))
    >>> {name: round(score.value, 3) for name, score in scores.items()}
    {'exact': 0.5, 'wer': 0.5, 'ser': 0.167}

    Args:
        groups: Rows of one group are not independent; see `classification_scores`.
    """
    return {name: one.score(groups) for name, one in measured.items()}


def translation_comparison(
    first: Mapping[str, Measured], second: Mapping[str, Measured], groups: Groups | None = None
) -> dict[str, Comparison]:
    """Two systems on the same rows: `exact` by McNemar's test, the rest by randomisation."""
    found: dict[str, Comparison] = {}
    for name, one in first.items():
        other = second[name]
        if name == "exact":
            right = [side.rows[:, 0].astype(np.bool_) for side in (one, other)]
            found[name] = paired_test(*right, groups=groups)
        else:
            better = one.gains_over(other)
            sides = (one.rows,), (other.rows,)
            found[name] = randomisation_test(one.statistic, *sides, better=better, groups=groups)
    return found
