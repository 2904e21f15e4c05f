"""Intervals of ratios of sums, at the ends too: Wilson's, with an effective number of trials.

Accuracy is right answers over rows, F1 is twice the hits over what is true plus what is predicted,
a word error rate is edits over words. Near 0 and 1 the bootstrap fails such ratios: when all of 50
rows are right, they are all right in every resample. Wilson (1927) keeps every true ratio x under
which the one observed is no surprise:

    (observed - x)^2 <= z^2 V(x) / n        V(x) = x (1 - x) for a share, x for a rate

Here n is the number of trials that would give the variance seen between the rows. So rows with
several trials each and means over classes fit in. The variance includes half a row that is all
right and half a row that is all wrong, so that it is never 0; where all rows agree, n is the number
of rows. Of rows in groups the variance is mostly the jackknife's over groups, but for a small part
that of groups and two half groups, since a few groups may happen to agree near 0 and 1; n is at
most what it would be without groups.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int, Shaped

from glassformer.metrics.intervals import (
    LEVEL,
    PerRow,
    Score,
    flatten_rows,
    jackknife,
    normal_deviations,
    split_sums,
)
from glassformer.metrics.units import ROWS, Units

Variance = Callable[[float], float]  # of a single trial, at a share or rate
SMOOTH = 0.25  # the part of the variance of groups that comes from groups and two half groups


def share_score(
    part: PerRow,
    whole: PerRow,
    *,
    counts: Int[np.ndarray, " N"] | None = None,
    units: Units = ROWS,
    level: float = LEVEL,
) -> Score:
    """The part of a whole, between 0 and 1, and its interval.

    >>> print(share_score(np.ones(50), np.ones(50)))
    1.000 [0.929, 1.000]

    Args:
        part: What each row adds to the part. One column for each class gives the mean over the
            classes whose whole is above 0; without any, the share is 0, and may be anything.
        whole: What each row adds to the whole.
        counts: How many equal rows each row stands for; one unless given.
        units: What the rows are sampled by.
    """
    measured = _measure(part, whole, lambda x: x * (1 - x), counts, units)
    if measured is None:
        return Score(0.0, 0.0, 1.0)
    value, trials = measured
    return Score(value, *wilson(value, trials, level).tolist())


def rate_score(part: PerRow, whole: PerRow, *, units: Units = ROWS, level: float = LEVEL) -> Score:
    """The same for a rate, which may exceed 1; NaN if the whole is 0."""
    measured = _measure(part, whole, lambda x: x, None, units)
    if measured is None:
        return Score.without_interval(np.nan, "nothing to score")
    value, trials = measured
    z = normal_deviations(level)
    centre = value + z**2 / (2 * trials)
    reach = z * np.sqrt(value / trials + (z / (2 * trials)) ** 2)
    return Score(value, float(max(0.0, min(centre - reach, value))), float(centre + reach))


def wilson(
    share: float | Float[np.ndarray, "..."], trials: float, level: float = LEVEL
) -> Float[np.ndarray, "2 ..."]:
    """The low and the high end of Wilson's interval of a share of so many trials.

    >>> wilson(0.9, 30.0).round(3)
    array([0.744, 0.965])
    """
    z = normal_deviations(level)
    centre = share + z**2 / (2 * trials)
    reach = z * np.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    shrink = 1 + z**2 / trials
    # Rounding may carry an end past 0, 1 or the share itself.
    low = np.clip((centre - reach) / shrink, 0, share)
    return np.stack([low, np.clip((centre + reach) / shrink, share, 1)])


def _measure(
    part: PerRow,
    whole: PerRow,
    variance_at: Variance,
    counts: Int[np.ndarray, " N"] | None,
    units: Units,
) -> tuple[float, float] | None:
    """The mean ratio of the columns, and the effective number of its trials."""
    table, shapes = flatten_rows([part, whole])
    parts, wholes = (side.reshape(len(table), -1) for side in split_sums(table, shapes))
    weights = np.ones(len(table)) if counts is None else counts
    used = weights @ wholes > 0  # (C,)
    if not used.any():
        return None
    parts, wholes = parts[:, used], wholes[:, used]
    value = float(((weights @ parts) / (weights @ wholes)).mean())
    trials = _trials(parts, wholes, weights, variance_at)
    if not units.several:
        return value, trials
    most = float(wholes.sum()) if units.alike else trials
    parts, wholes = units.sums(parts), units.sums(wholes)
    smooth = _trials(parts, wholes, np.ones(len(parts)), variance_at)
    seen = jackknife(_mean_ratio, parts, wholes).variance
    if not np.isfinite(seen):  # a single group
        return value, smooth
    single = variance_at(value)
    seen = seen / single if single else 0.0
    return value, min(most, 1 / ((1 - SMOOTH) * seen + SMOOTH / smooth))


def _trials(
    parts: Float[np.ndarray, "N C"],
    wholes: Float[np.ndarray, "N C"],
    weights: Shaped[np.ndarray, " N"],
    variance_at: Variance,
) -> float:
    """The trials that give the variance between the rows and two half rows, right and wrong."""
    part_sum, whole_sum = weights @ parts, weights @ wholes
    unit = weights @ wholes**2 / whole_sum  # (C,) trials of a typical unit
    smooth = (part_sum + unit / 2) / (whole_sum + unit)
    # How far each unit moves the mean ratio. The added units make a share of single trials look as
    # if it had one trial more; the scale takes that back.
    scale = len(unit) * np.sqrt(whole_sum * (whole_sum + unit))
    moves = ((parts - smooth * wholes) / scale).sum(1)
    added = (unit / scale) ** 2 * (smooth**2 + (1 - smooth) ** 2) / 2
    return float(variance_at(float(smooth.mean())) / (weights @ moves**2 + added.sum()))


def _mean_ratio(parts: Float[np.ndarray, "R C"], wholes: Float[np.ndarray, "R C"]) -> np.ndarray:
    ratios = np.divide(parts, wholes, out=np.zeros(wholes.shape), where=wholes > 0)
    return ratios.sum(1) / np.maximum(1, (wholes > 0).sum(1))
