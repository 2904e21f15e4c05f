"""Intervals of ratios of sums, at the ends too: Wilson's, with an effective number of trials.

Accuracy is right answers over rows, F1 is twice the hits over what is true plus what is predicted,
a word error rate is edits over words. Near 0 and 1 the bootstrap fails such ratios: when all of 50
rows are right, they are all right in every resample. Wilson (1927) keeps every true ratio x under
which the one observed is no surprise:

    (observed - x)^2 <= z^2 V(x) / n        V(x) = x (1 - x) for a share, x for a rate

Here n is the number of trials that would give the variance seen between the rows. So rows with
several trials each and means over classes fit in. The variance includes half a row that is all
right and half a row that is all wrong, so that it is never 0; where all rows agree, n is the number
of rows.
"""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from jaxtyping import Float, Int

from glassformer.metrics.intervals import LEVEL, PerRow, Score, flatten_rows, split_sums


def share_score(
    part: PerRow,
    whole: PerRow,
    *,
    counts: Int[np.ndarray, " N"] | None = None,
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
    """
    measured = _measure(part, whole, lambda x: x * (1 - x), counts)
    if measured is None:
        return Score(0.0, 0.0, 1.0)
    value, trials = measured
    return Score(value, *wilson(value, trials, level).tolist())


def rate_score(part: PerRow, whole: PerRow, *, level: float = LEVEL) -> Score:
    """The same for a rate, which may exceed 1; NaN if the whole is 0."""
    measured = _measure(part, whole, lambda x: x, None)
    if measured is None:
        return Score(np.nan, np.nan, np.nan)
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


def normal_deviations(level: float) -> float:
    """How many standard deviations to either side hold this share of a normal distribution."""
    return NormalDist().inv_cdf((1 + level) / 2)


def _measure(
    part: PerRow,
    whole: PerRow,
    variance_at: Callable[[float], float],
    counts: Int[np.ndarray, " N"] | None,
) -> tuple[float, float] | None:
    """The mean ratio of the columns, and the effective number of its trials."""
    table, shapes = flatten_rows([part, whole])
    parts, wholes = (side.reshape(len(table), -1) for side in split_sums(table, shapes))
    weights = np.ones(len(table)) if counts is None else counts
    used = weights @ wholes > 0  # (C,)
    if not used.any():
        return None
    parts, wholes = parts[:, used], wholes[:, used]
    part_sum, whole_sum = weights @ parts, weights @ wholes
    unit = weights @ wholes**2 / whole_sum  # (C,) trials of a typical unit
    smooth = (part_sum + unit / 2) / (whole_sum + unit)
    # How far each unit moves the mean ratio. The added units make a share of single trials look as
    # if it had one trial more; the scale takes that back.
    scale = len(unit) * np.sqrt(whole_sum * (whole_sum + unit))
    moves = ((parts - smooth * wholes) / scale).sum(1)
    added = (unit / scale) ** 2 * (smooth**2 + (1 - smooth) ** 2) / 2
    variance = weights @ moves**2 + added.sum()
    return float((part_sum / whole_sum).mean()), float(variance_at(smooth.mean()) / variance)
