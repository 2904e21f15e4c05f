"""Scores of translations, with intervals and paired comparisons.

A row has an answer and one or several references. In TEXT_MEASURES rows are sentences; in
SYMBOL_MEASURES a row is one word, spelt in symbols with blanks between them (such as phonemes), so
a wrong row is a wrong word. To add a score, write a function from answers and references to a
Measurement, and list it.
"""

from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np

from glassformer.metrics.error_rates import (
    character_error_rate,
    exact_match,
    mismatch,
    word_error_rate,
)
from glassformer.metrics.intervals import Score
from glassformer.metrics.measurement import Measure, Measurement, References, Texts
from glassformer.metrics.paired import Comparison, paired_test, randomisation_test
from glassformer.metrics.sacre import bleu, chrf, ter
from glassformer.metrics.units import ROWS, Units

TEXT_MEASURES: dict[str, Measure] = {
    "bleu": bleu,
    "chrf": chrf,
    "ter": ter,
    "exact": exact_match,
    "wer": word_error_rate,
    "cer": character_error_rate,
}
SYMBOL_MEASURES: dict[str, Measure] = {
    "exact": exact_match,
    "wer": mismatch,
    "ser": word_error_rate,
}


LIBRARIES: dict[Measure, str] = {  # that measures need, if they need one
    bleu: "sacrebleu",
    chrf: "sacrebleu",
    ter: "sacrebleu",
    word_error_rate: "rapidfuzz",
    character_error_rate: "rapidfuzz",
}


def missing_measures(measures: Mapping[str, Measure]) -> dict[str, str]:
    """The measures that cannot be computed here, each with the library that is not installed."""
    needed = {name: LIBRARIES[one] for name, one in measures.items() if one in LIBRARIES}
    return {name: library for name, library in needed.items() if find_spec(library) is None}


def measure_translations(
    answers: Texts,
    references: References,
    measures: Mapping[str, Measure] = TEXT_MEASURES,
    units: Units = ROWS,
) -> dict[str, Measurement]:
    """Every score's statistics, row by row; `units` are what the rows are sampled by."""
    return {name: measure(answers, references).by(units) for name, measure in measures.items()}


def translation_scores(measured: Mapping[str, Measurement]) -> dict[str, Score]:
    """Each score with its interval: bleu, chrf and ter are percentages, the others are not.

    >>> answers, references = ["R EH D", "T AA B"], [["R EH D", "R IY D"], ["T AA P"]]
    >>> measured = measure_translations(answers, references, SYMBOL_MEASURES)
    >>> scores = translation_scores(measured)
    >>> {name: round(score.value, 3) for name, score in scores.items()}
    {'exact': 0.5, 'wer': 0.5, 'ser': 0.167}
    """
    return {name: one.score() for name, one in measured.items()}


def translation_comparison(
    first: Mapping[str, Measurement], second: Mapping[str, Measurement]
) -> dict[str, Comparison]:
    """Two systems on the same rows: `exact` by McNemar's test, other scores by randomisation."""
    found: dict[str, Comparison] = {}
    for name, one in first.items():
        other = second[name]
        if name == "exact":
            right = [side.rows[:, 0].astype(np.bool_) for side in (one, other)]
            found[name] = paired_test(right[0], right[1], one.units)
        else:
            better = one.gains_over(other)
            sides = (one.rows,), (other.rows,)
            found[name] = randomisation_test(
                one.statistic, *sides, better=better, kind=one.kind, units=one.units
            )
    return found
