"""Paired tests: is the difference between two systems on the same rows significant?

For rows that are right or wrong, McNemar's test (1947), in its exact form, is a sign test of wins
and losses. For any other score, and for rows in groups, approximate randomisation (Noreen, 1989)
swaps the two systems' answers on random units and counts how often they then differ as much.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Shaped

from glassformer.metrics.calibration import Labels, Probabilities
from glassformer.metrics.classification import (
    THRESHOLD,
    Threshold,
    check_labels,
    f1_counts,
    macro_f1,
    predicted_classes,
    right_rows,
)
from glassformer.metrics.intervals import (
    LEVEL,
    PerRow,
    Score,
    Statistic,
    flatten_rows,
    jackknife,
    normal_deviations,
    ratio,
    split_sums,
)
from glassformer.metrics.units import ROWS, Units

RESAMPLES = 1000
CELLS = 2**21  # swaps held at once, so that memory does not grow with the number of units
ROUNDING = 1e-12  # equal differences are equal whatever the order of summation


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference between two systems, and whether it is significant.

    Attributes:
        difference: First minus second.
        p_value: The probability of a difference this large if both were equally good; None where
            there are too few units to tell.
        wins: Rows on which the first is better.
        losses: Rows on which the second is better.
        ties: All other rows.
        gains: How much better the first is on each row, if known.
        units: What the rows are sampled by.
    """

    difference: Score
    p_value: float | None
    wins: int
    losses: int
    ties: int
    gains: Shaped[np.ndarray, " N"] | None = field(default=None, compare=False, repr=False)
    units: Units = field(default=ROWS, compare=False, repr=False)

    @property
    def reason(self) -> str:
        """Why there is no p-value; empty if there is one."""
        return "" if self.p_value is not None else self.difference.reason

    @property
    def compared(self) -> str:
        """On how many rows, and of how many groups."""
        return self.units.described(self.rows)

    @property
    def rows(self) -> int:
        """How many rows were compared."""
        return self.wins + self.losses + self.ties

    def as_values(self) -> dict[str, object]:
        """As plain values, for JSON; without the gains of single rows."""
        counts = {name: getattr(self, name) for name in ("wins", "losses", "ties")}
        found = {"difference": self.difference.as_values(), "p_value": self.p_value, **counts}
        if self.units.groups is not None:
            found["units"] = self.units.count(self.rows)
        return found if self.p_value is not None else found | {"reason": self.reason}

    def __str__(self) -> str:
        low, high = self.difference.low, self.difference.high
        luck = f"({self.reason})"
        if self.p_value is not None:
            luck = f"[{low:+.3f}, {high:+.3f}], p = {self.p_value:.3g}"
        counts = f"{self.wins} better, {self.losses} worse, {self.ties} the same"
        return f"{self.difference.value:+.3f} {luck}; {counts}"


def paired_test(
    first: Bool[np.ndarray, " N"], second: Bool[np.ndarray, " N"], units: Units = ROWS
) -> Comparison:
    """Two systems by the rows they have right: the difference in accuracy, and McNemar's test.

    Where rows have groups, whole groups are swapped instead.

    >>> print(paired_test(np.arange(100) < 90, np.arange(100) < 80))
    +0.100 [+0.034, +0.162], p = 0.00195; 10 better, 0 worse, 90 the same
    """
    check_pair(len(first), len(second))
    gains = first.astype(np.int64) - second
    wins, losses, ties = outcomes(gains)
    if units.several:
        rows = np.ones(len(gains))
        sides = (first.astype(np.float64), rows), (second.astype(np.float64), rows)
        return randomisation_test(ratio, *sides, better=gains, kind="share", units=units)
    difference = share_difference(wins, losses, len(gains))
    chance: float | None = sign_test(wins, losses)
    return judged(Comparison(difference, chance, wins, losses, ties, gains, units), "share")


def judged(found: Comparison, kind: str) -> Comparison:
    """The comparison, without interval and p-value where there are too few units for them."""
    why = found.units.objection(f"difference of {kind}", found.rows, "a comparison")
    if not why:
        return found
    return replace(
        found, difference=Score.without_interval(found.difference.value, why), p_value=None
    )


def share_difference(wins: int, losses: int, rows: int) -> Score:
    """The difference of two shares of the same rows, and its interval. Bonett and Price, 2012.

    Two rows are added, a win and a loss, so the interval has a width even if no row differs.
    """
    more, fewer, total = wins + 1, losses + 1, rows + 2
    centre = (more - fewer) / total
    reach = normal_deviations(LEVEL) * math.sqrt(((more + fewer) / total - centre**2) / total)
    value = (wins - losses) / rows
    return Score(value, max(-1.0, min(centre - reach, value)), min(1.0, max(centre + reach, value)))


def randomisation_test(
    statistic: Statistic,
    first: Sequence[PerRow],
    second: Sequence[PerRow],
    *,
    better: Shaped[np.ndarray, " N"],
    kind: str = "mean",
    units: Units = ROWS,
    weights: Float[np.ndarray, " N"] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Two systems by any score that is a function of sums over rows (see `intervals`).

    Args:
        first: What each row adds to the sums of the first system; `second` likewise.
        better: Above 0 where the first is better on a row, below 0 where the second is.
        kind: Which score it is, in `units.LEAST`.
        units: What the rows are sampled by; the answers to a whole unit are swapped.
        weights: The size of each row; equal unless given.
    """
    check_pair(len(first[0]), len(second[0]))

    def difference_of(*sums: np.ndarray) -> np.ndarray:
        return statistic(*sums[: len(first)]) - statistic(*sums[len(first) :])

    arrays = [units.sums(array) for array in (*first, *second)]
    sizes = units.sums(np.ones(len(better)) if weights is None else weights)
    difference = _difference(difference_of, arrays, sizes, single=kind == "share")
    table, shapes = flatten_rows(arrays)
    extreme = 0
    for sums in swapped_sums(table, resamples, np.random.default_rng([seed, 1])):
        differences = difference_of(*split_sums(sums, shapes))
        extreme += int((np.abs(differences) >= abs(difference.value) - ROUNDING).sum())
    chance = (1 + extreme) / (1 + resamples)
    return judged(Comparison(difference, chance, *outcomes(better), better, units), kind)


def _difference(
    statistic: Statistic, arrays: list[np.ndarray], sizes: Float[np.ndarray, " N"], *, single: bool
) -> Score:
    """A difference and its interval.

    Args:
        single: Whether a row is right or wrong, so that a row won and a row lost are added, as by
            Bonett and Price.
    """
    found = jackknife(statistic, *arrays, weights=sizes)
    added = 2 / sizes.sum() ** 2 if single else 0.0
    score = replace(found, variance=found.variance + added).score()
    if score.interval is None or not single:
        return score
    return replace(score, low=max(-1.0, score.low), high=min(1.0, score.high))


def classification_comparison(
    labels: Labels,
    first: Probabilities,
    second: Probabilities,
    thresholds: tuple[Threshold, Threshold] = (THRESHOLD, THRESHOLD),
    units: Units = ROWS,
) -> dict[str, Comparison]:
    """Two classifiers by their probabilities: accuracy (McNemar) and macro_f1 (randomisation).

    Args:
        labels: As for `classification_scores`; `units` likewise.
        thresholds: Of each, if multi-label.
    """
    right, counts = [], []
    for probabilities, threshold in zip((first, second), thresholds, strict=True):
        check_labels(labels, probabilities)
        predictions = predicted_classes(labels, probabilities, threshold)
        right.append(right_rows(labels, predictions))
        counts.append(f1_counts(labels, predictions, probabilities.shape[1]))
    gains = right[0].astype(np.int64) - right[1]
    return {
        "accuracy": paired_test(right[0], right[1], units),
        "macro_f1": randomisation_test(macro_f1, *counts, better=gains, kind="f1", units=units),
    }


def swapped_sums(
    table: Float[np.ndarray, "N K"], resamples: int, rng: np.random.Generator
) -> Iterator[Float[np.ndarray, "R K"]]:
    """Sums of both systems, side by side, swapped on a random half of the units."""
    half = table.shape[1] // 2
    change = np.concatenate([table[:, half:], table[:, :half]], axis=1) - table
    for size in batch_sizes(resamples, len(table)):
        swapped = rng.integers(0, 2, (size, len(table)), dtype=np.int8)
        yield table.sum(axis=0) + swapped.astype(np.float64) @ change


def batch_sizes(resamples: int, units: int) -> Iterator[int]:
    """Sizes of batches of resamples that fit in memory."""
    most = max(1, CELLS // units)
    for start in range(0, resamples, most):
        yield min(most, resamples - start)


def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p-value of the sign test.

    >>> sign_test(0, 5)
    0.0625
    """
    tosses, fewer = wins + losses, min(wins, losses)
    if tosses == 0:
        return 1.0
    tail = sum(math.exp(log_binomial(tosses, heads)) for heads in range(fewer + 1))
    return min(1.0, 2 * tail)


def log_binomial(tosses: int, heads: int) -> float:
    """The log-probability of so many heads in tosses of a fair coin."""
    combinations = (
        math.lgamma(tosses + 1) - math.lgamma(heads + 1) - math.lgamma(tosses - heads + 1)
    )
    return combinations - tosses * math.log(2)


def outcomes(better: Shaped[np.ndarray, " N"]) -> tuple[int, int, int]:
    """Wins, losses and ties of the first system."""
    wins, losses = int((better > 0).sum()), int((better < 0).sum())
    return wins, losses, len(better) - wins - losses


def check_pair(first: int, second: int) -> None:
    """Refuse two systems with different rows."""
    if first != second or first == 0:
        raise ValueError(
            f"a paired comparison needs both systems' answers to the same rows; got {first} and "
            f"{second} rows"
        )
