"""Scores of recommendations: RMSE of ratings, hit rate, NDCG and coverage of lists.

Each question has one right item, at a rank from 1 on among all that could be recommended. Rows of
one user are alike, so intervals and comparisons go by user: the sums of each are one row.

    hit rate@k    the share of questions whose item is among the first k
    NDCG@k        1 / log2(1 + rank), 0 beyond k    Järvelin and Kekäläinen, 2002; one right item
    coverage@k    the share of all items that is in some list of k
"""

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from glassformer.metrics.intervals import Score, jackknife, ratio
from glassformer.metrics.measurement import Measurement
from glassformer.metrics.ratios import share_score
from glassformer.metrics.units import Units

FIRST = 10  # items of a list that count
USERS = Units("user", alike=True)

Ranks = Float[np.ndarray, " N"]
Users = Int[np.ndarray, " N"]


def hits(ranks: Ranks, first: int = FIRST) -> Bool[np.ndarray, " N"]:
    """Which questions have their item among the first."""
    return ranks <= first


def discounted_gains(ranks: Ranks, first: int = FIRST) -> Float[np.ndarray, " N"]:
    """What each question adds to NDCG.

    >>> discounted_gains(np.array([1.0, 3.0, 11.0])).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.where(hits(ranks, first), 1 / np.log2(1 + ranks), 0.0)


def coverage(lists: Int[np.ndarray, "N first"], items: int) -> float:
    """The share of all items that are in some list; negative numbers are no items."""
    return len(np.unique(lists[lists >= 0])) / items


def mean_by_user(values: Shaped[np.ndarray, " N"], users: Users) -> Measurement:
    """The mean of shares, such as hits or gains."""
    return Measurement(
        user_sums(values, users),
        lambda sums: ratio(sums[:, 0], sums[:, 1]),
        lambda sums: ratio(sums[:, 0], sums[:, 1]),
        higher_is_better=True,
        kind="share",
        interval=lambda sums, units: share_score(sums[:, 0], sums[:, 1], units=units),
        units=USERS,
    )


def root_mean_square(errors: Float[np.ndarray, " N"], users: Users) -> Measurement:
    """The root of the mean squared error."""
    return Measurement(
        user_sums(errors.astype(np.float64) ** 2, users),
        lambda sums: np.sqrt(ratio(sums[:, 0], sums[:, 1])),
        lambda sums: np.sqrt(ratio(sums[:, 0], sums[:, 1])),
        higher_is_better=False,
        kind="rms",
        interval=lambda sums, units: root_mean_square_score(sums),
        units=USERS,
    )


def root_mean_square_score(sums: Float[np.ndarray, "units 2"]) -> Score:
    """The root of a mean of squares and its interval, symmetric on the scale of logarithms.

    Squares of errors are skewed to the right, so the truth is above the score more often than
    below.

    Args:
        sums: The sum of the squares of each unit, and their number.
    """
    value = float(np.sqrt(ratio(*sums.sum(0, keepdims=True).T))[0])
    if not value > 0:
        return Score.without_interval(value, "no errors: no interval")
    found = jackknife(_log_root, sums[:, 0], sums[:, 1], weights=sums[:, 1]).score()
    if found.interval is None:
        return Score.without_interval(value, found.reason)
    low, high = np.exp(found.interval).tolist()
    return Score(value, low, high)


def _log_root(squares: np.ndarray, count: np.ndarray) -> np.ndarray:
    mean = ratio(squares, count)
    return np.log(mean, out=np.full(mean.shape, np.nan), where=mean > 0) / 2


def user_sums(values: Shaped[np.ndarray, " N"], users: Users) -> Float[np.ndarray, "users 2"]:
    """The sum of the values of each user, and their number."""
    _, owner = np.unique(users, return_inverse=True)
    return np.stack([np.bincount(owner, values), np.bincount(owner)], axis=1).astype(np.float64)
