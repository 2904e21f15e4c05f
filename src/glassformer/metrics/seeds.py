"""Scores of trainings that differ only in their seed, taken together.

A score varies with the seed and with the rows it is measured on. With S seeds, scores of variance
s² over the seeds, an error e² over the rows, and a correlation ρ between seeds of what a row adds,
the mean has the variance

    V = max(s², (1 - ρ) e²) / S + ρ e²

because rows that are hard for every seed do not average out, and the others are already part of s².
Its degrees of freedom are those of Satterthwaite (1946), so that three seeds give an honestly wide
interval. With one seed there is no s²: the interval covers the rows only.
"""

import math
from collections.abc import Sequence
from statistics import mean, variance

import numpy as np

from glassformer.metrics.intervals import (
    LEVEL,
    MOST_FREEDOM,
    Estimate,
    Score,
    normal_deviations,
)
from glassformer.metrics.paired import Comparison


def over_seeds(scores: Sequence[Score], correlation: float = 1.0) -> Estimate:
    """The mean of one score over several seeds, all measured on the same rows.

    Without intervals over rows, the variance is that over seeds: it holds for these very rows.

    Args:
        correlation: Between seeds, of what a row adds to the score; 1 for rows that are as hard for
            every seed, which gives the widest interval.
    """
    values, seeds = [score.value for score in scores], len(scores)
    ends = [score.interval for score in scores]
    if seeds == 1 and ends[0] is None:
        return Estimate(values[0], math.nan, MOST_FREEDOM, scores[0].reason)
    widths = [
        0.0 if pair is None else (pair[1] - pair[0]) / (2 * normal_deviations(LEVEL))
        for pair in ends
    ]
    rows = mean(width**2 for width in widths)
    trained = variance(values) / seeds if seeds > 1 else 0.0
    total = max(trained, (1 - correlation) * rows / seeds) + correlation * rows
    freedom = (seeds - 1) * (total / trained) ** 2 if trained else MOST_FREEDOM
    return Estimate(mean(values), total, min(MOST_FREEDOM, freedom))


def paired_over_seeds(found: Sequence[Comparison]) -> Estimate:
    """The mean difference of two systems over several seeds, each compared on the same rows."""
    gains = [one.gains for one in found]
    differences = [one.difference for one in found]
    return over_seeds(differences, correlation_of([one for one in gains if one is not None]))


def correlation_of(gains: Sequence[np.ndarray]) -> float:
    """The mean correlation of the rows' gains between seeds, from 0 to 1; 1 if it is unknown.

    >>> correlation_of([np.array([1, 0, -1, 0]), np.array([1, 0, -1, 0]), np.array([0, 1, 0, -1])])
    0.3333333333333333
    """
    if len(gains) < 2 or any(np.ptp(one) == 0 for one in gains):
        return 1.0
    table = np.atleast_2d(np.corrcoef(np.stack(gains).astype(np.float64)))
    return float(np.clip(table[np.triu_indices(len(gains), 1)].mean(), 0.0, 1.0))


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values of several tests, corrected for their number. Holm, 1979.

    Where one is not known, none is.

    >>> adjusted([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = [value for value in p_values if value is not None]
    if len(known) < len(p_values):
        return [None] * len(p_values)
    found, largest = [0.0] * len(known), 0.0
    for done, place in enumerate(sorted(range(len(known)), key=known.__getitem__)):
        largest = max(largest, min(1.0, (len(known) - done) * known[place]))
        found[place] = largest
    return [*found]
