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
from dataclasses import dataclass
from statistics import mean, variance

import numpy as np

from glassformer.metrics.intervals import LEVEL, Score
from glassformer.metrics.paired import Comparison
from glassformer.metrics.ratios import normal_deviations

MOST_FREEDOM = 1000.0  # beyond, Student's t is as good as normal
NODES, WEIGHTS = np.polynomial.legendre.leggauss(256)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds, the variance of this mean, and the degrees of freedom of the variance."""

    value: float
    variance: float
    freedom: float

    def score(self) -> Score:
        """The mean with its interval.

        >>> print(Estimate(0.5, 0.01, 2.0).score())
        0.500 [0.070, 0.930]
        """
        reach = deviations(LEVEL, self.freedom) * math.sqrt(self.variance)
        return Score(self.value, self.value - reach, self.value + reach)

    def p_value(self) -> float:
        """The probability of a mean at least this far from zero, if the truth is zero."""
        if not self.variance:
            return 1.0 if not self.value else 0.0
        return tail(abs(self.value) / math.sqrt(self.variance), self.freedom)

    def minus(self, other: "Estimate") -> "Estimate":
        """The difference of two means that are independent of each other."""
        parts = [(one.variance, one.freedom) for one in (self, other)]
        total = sum(part for part, _ in parts)
        spread = sum(part**2 / freedom for part, freedom in parts)
        freedom = min(MOST_FREEDOM, total**2 / spread) if spread else MOST_FREEDOM
        return Estimate(self.value - other.value, total, freedom)


def over_seeds(scores: Sequence[Score], correlation: float = 1.0) -> Estimate:
    """The mean of one score over several seeds, all measured on the same rows.

    Args:
        correlation: Between seeds, of what a row adds to the score; 1 for rows that are as hard for
            every seed, which gives the widest interval.
    """
    values, seeds = [score.value for score in scores], len(scores)
    widths = [(score.high - score.low) / (2 * normal_deviations(LEVEL)) for score in scores]
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


def adjusted(p_values: Sequence[float]) -> list[float]:
    """P-values of several tests, corrected for their number. Holm, 1979.

    >>> adjusted([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    found, largest = [0.0] * len(p_values), 0.0
    for done, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - done) * p_values[place]))
        found[place] = largest
    return found


def tail(deviation: float, freedom: float) -> float:
    """The probability that Student's t lies at least this far from zero, on either side.

    With t = √ν tan θ its density is proportional to cos θ to the power of ν - 1.

    >>> round(tail(4.3027, 2.0), 4), round(tail(1.96, 1000.0), 3)
    (0.05, 0.05)
    """

    def above(start: float) -> float:
        half = (math.pi / 2 - start) / 2
        angles = start + half * (NODES + 1)
        return float(half * (WEIGHTS * np.cos(angles) ** (freedom - 1)).sum())

    return above(math.atan(deviation / math.sqrt(freedom))) / above(0.0)


def deviations(level: float, freedom: float) -> float:
    """How many standard errors to either side hold this share of Student's t.

    >>> round(deviations(0.95, 2.0), 3)
    4.303
    """
    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, freedom) > 1 - level else (low, middle)
    return high
