"""The bootstrap: how far a score would change with another sample of rows. Efron, 1979.

Scores are functions of sums over rows: accuracy of (right, rows), word error rate of (errors,
words), F1 of counts by class, BLEU of counts by n-gram order. So a resample is a weight for every
row, and a thousand resamples are one product of matrices. A new score brings its sums and needs
nothing else. Scores that are ratios have better intervals in `ratios.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

PerRow = Shaped[np.ndarray, "N ..."]  # what each row adds to a sum: a number, or several
Statistic = Callable[..., np.ndarray]  # from sums, each (R, ...), to R scores

RESAMPLES = 1000
LEVEL = 0.95
CELLS = 2**21  # weights held at once, so that memory does not grow with the number of rows


@dataclass(frozen=True, slots=True)
class Score:
    """A measured value and the ends of its interval.

    >>> print(Score(0.9124, 0.9051, 0.9193))
    0.912 [0.905, 0.919]
    >>> print(Score(34.21, 33.05, 35.4))
    34.2 [33.0, 35.4]
    """

    value: float
    low: float
    high: float

    def as_values(self) -> dict[str, float]:
        """As plain numbers, for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        digits = 1 if abs(self.value) >= 10 else 3
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def bootstrap(
    statistic: Statistic,
    *arrays: PerRow,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Score:
    """A score and the percentile interval of its bootstrap resamples.

    >>> right, rows = np.array([1, 1, 0, 1]), np.ones(4)
    >>> print(bootstrap(lambda right, rows: right / rows, right, rows))
    0.750 [0.250, 1.000]

    Args:
        statistic: From the sums of each array over the rows, of R resamples at once, to R scores.
        arrays: What each row adds to the sums.
    """
    table, shapes = flatten_rows(arrays)
    value = float(statistic(*split_sums(np.ones((1, len(table))) @ table, shapes))[0])
    rng = np.random.default_rng(seed)
    batches = draw_counts(len(table), resamples, rng)
    values = np.concatenate([statistic(*split_sums(drawn @ table, shapes)) for drawn in batches])
    values = values[np.isfinite(values)]  # a resample may leave nothing to divide by
    if not len(values):
        return Score(value, value, value)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2]).tolist()
    # An interval without its own value would only confuse.
    return Score(value, min(low, value), max(high, value))


def draw_counts(
    rows: int, resamples: int, rng: np.random.Generator
) -> Iterator[Float[np.ndarray, "R N"]]:
    """How often each resample draws each row, in batches of resamples."""
    for size in batch_sizes(resamples, rows):
        picked = rng.integers(0, rows, (size, rows)) + rows * np.arange(size)[:, None]
        drawn = np.bincount(picked.ravel(), minlength=size * rows)
        yield drawn.reshape(size, rows).astype(np.float64)


def batch_sizes(resamples: int, rows: int) -> Iterator[int]:
    """Sizes of batches of resamples that fit in memory."""
    most = max(1, CELLS // rows)
    for start in range(0, resamples, most):
        yield min(most, resamples - start)


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


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """One sum over another: accuracy of (right, rows), word error rate of (errors, words)."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole != 0)
