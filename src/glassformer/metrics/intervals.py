"""Scores and their intervals: the jackknife by unit, with Student's t. Tukey, 1958.

Scores are functions of sums over units (see `units`): bits per byte of (bits, bytes), BLEU of
counts by n-gram order. Leave out one of n units after the other, and the scores θ_i say how much a
unit moves the score:

    variance = (n - 1) / n  Σ (θ_i - mean)²        freedom = (Σ w)² / Σ w² - 1

The freedom is the effective number of units of weights w, less one (Kish, 1965): where one document
is as long as all others together, there are few. So few units give an honestly wide interval, where
the percentiles of a bootstrap are too narrow. Shares and rates have better intervals in `ratios`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from jaxtyping import Float, Shaped

PerRow = Shaped[np.ndarray, "N ..."]  # what each row adds to a sum: a number, or several
Statistic = Callable[..., np.ndarray]  # from sums, each (R, ...), to R scores

LEVEL = 0.95
BLOCKS = 1000  # units that are left out one by one; more are put into so many blocks at random
UNKNOWN = "no interval: all depends on a single row"
MOST_FREEDOM = 1000.0  # beyond, Student's t is as good as normal
NODES, WEIGHTS = np.polynomial.legendre.leggauss(256)


@dataclass(frozen=True, slots=True)
class Score:
    """A measured value and the ends of its interval, or the reason why there is none.

    >>> print(Score(0.9124, 0.9051, 0.9193))
    0.912 [0.905, 0.919]
    >>> print(Score(34.21, 33.05, 35.4))
    34.2 [33.0, 35.4]
    >>> print(Score.without_interval(1.8124, "one document: no interval"))
    1.812 (one document: no interval)

    Attributes:
        low, high: NaN where there is no interval.
        reason: Why there is none.
    """

    value: float
    low: float
    high: float
    reason: str = ""

    @classmethod
    def without_interval(cls, value: float, reason: str) -> "Score":
        """A value alone."""
        return cls(value, math.nan, math.nan, reason)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, if there is an interval."""
        known = math.isfinite(self.low) and math.isfinite(self.high)
        return (self.low, self.high) if known else None

    def as_values(self) -> dict[str, object]:
        """As plain values, for JSON; `interval` is null where a reason says why there is none."""
        if self.interval is not None:
            return {"value": self.value, "low": self.low, "high": self.high}
        ends = {"low": None, "high": None, "interval": None}
        return {"value": self.value, **ends, "reason": self.reason}

    def __str__(self) -> str:
        digits = 1 if abs(self.value) >= 10 else 3
        if self.interval is None:
            return f"{self.value:.{digits}f} ({self.reason})"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, the variance of what was measured, and the degrees of freedom of the variance.

    Attributes:
        variance: NaN if it is not known.
        reason: Why it is not.
    """

    value: float
    variance: float
    freedom: float
    reason: str = UNKNOWN

    def score(self, level: float = LEVEL) -> Score:
        """The value with its interval.

        >>> print(Estimate(0.5, 0.01, 2.0).score())
        0.500 [0.070, 0.930]
        """
        if not math.isfinite(self.variance):
            return Score.without_interval(self.value, self.reason)
        reach = deviations(level, self.freedom) * math.sqrt(self.variance)
        return Score(self.value, self.value - reach, self.value + reach)

    def p_value(self) -> float | None:
        """The probability of a value at least this far from zero, if the truth is zero.

        None if the variance is not known.
        """
        if not math.isfinite(self.variance):
            return None
        if not self.variance:
            return 1.0 if not self.value else 0.0
        return tail(abs(self.value) / math.sqrt(self.variance), self.freedom)

    def minus(self, other: "Estimate") -> "Estimate":
        """The difference of two values that are independent of each other."""
        parts = [(one.variance, one.freedom) for one in (self, other)]
        total = sum(part for part, _ in parts)
        spread = sum(part**2 / freedom for part, freedom in parts)
        freedom = min(MOST_FREEDOM, total**2 / spread) if spread else MOST_FREEDOM
        return Estimate(self.value - other.value, total, freedom, self.reason)


def jackknife(
    statistic: Statistic, *arrays: PerRow, weights: Float[np.ndarray, " N"] | None = None
) -> Estimate:
    """A score, and its variance when each unit is left out in turn.

    >>> right, rows = np.array([1.0, 1, 0, 1]), np.ones(4)
    >>> print(jackknife(ratio, right, rows).score())
    0.750 [-0.046, 1.546]

    Args:
        statistic: From the sums of each array over the units, R times, to R scores.
        arrays: What each unit adds to the sums.
        weights: The size of each unit, such as its bytes; equal unless given.
    """
    table, shapes = flatten_rows(arrays)
    weights = np.ones(len(table)) if weights is None else weights
    value = float(statistic(*split_sums(table.sum(0, keepdims=True), shapes))[0])
    table, weights = _in_blocks(table, weights)
    if len(table) < 2 or not math.isfinite(value):
        return Estimate(value, math.nan, 1.0)
    without = statistic(*split_sums(table.sum(0) - table, shapes))
    variance = float((len(table) - 1) * without.var())
    return Estimate(value, variance, freedom_of(weights))


def freedom_of(weights: Float[np.ndarray, " N"]) -> float:
    """The degrees of freedom of units of different weights.

    >>> freedom_of(np.ones(11)), round(freedom_of(np.array([10.0, 1.0, 1.0])), 2)
    (10.0, 1.0)
    """
    squares = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / squares if squares else 0.0
    return min(MOST_FREEDOM, max(1.0, effective - 1))


def _in_blocks(
    table: Float[np.ndarray, "N K"], weights: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, "M K"], Float[np.ndarray, " M"]]:
    """The sums of random blocks of many units, of few the units themselves."""
    if len(table) <= BLOCKS:
        return table, weights
    order = np.random.default_rng(0).permutation(len(table))
    starts = np.linspace(0, len(table), BLOCKS, endpoint=False).astype(np.int64)
    blocks = np.add.reduceat(table[order], starts), np.add.reduceat(weights[order], starts)
    return blocks[0], blocks[1]


def normal_deviations(level: float) -> float:
    """How many standard deviations to either side hold this share of a normal distribution."""
    return NormalDist().inv_cdf((1 + level) / 2)


def deviations(level: float, freedom: float) -> float:
    """How many standard errors to either side hold this share of Student's t.

    >>> round(deviations(0.95, 2.0), 3)
    4.303
    """
    return _deviations(level, round(freedom, 2))


@lru_cache(maxsize=1 << 14)
def _deviations(level: float, freedom: float) -> float:
    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, freedom) > 1 - level else (low, middle)
    return high


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


def flatten_rows(
    arrays: Sequence[PerRow],
) -> tuple[Float[np.ndarray, "N K"], list[tuple[int, ...]]]:
    """The arrays as columns of one table, and the shape of each array's rows."""
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) != 1 or lengths[0] == 0:
        raise ValueError(
            f"scores need arrays of equal length, with at least one row; got lengths {lengths}"
        )
    flat = [array.reshape(len(array), -1).astype(np.float64) for array in arrays]
    return np.concatenate(flat, axis=1), [array.shape[1:] for array in arrays]


def split_sums(
    sums: Float[np.ndarray, "R K"], shapes: Sequence[tuple[int, ...]]
) -> list[np.ndarray]:
    """The sums of each array, with the resamples as the first axis."""
    widths = [int(np.prod(shape)) for shape in shapes]
    parts = np.split(sums, np.cumsum(widths)[:-1], axis=1)
    return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]


def exponential(score: Score) -> Score:
    """A score on another scale, as a perplexity is that of a loss in nats."""
    value, low, high = (math.exp(min(end, 100)) for end in (score.value, score.low, score.high))
    return Score(value, low, high, score.reason)


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """One sum over another: accuracy of (right, rows), word error rate of (errors, words)."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole != 0)
