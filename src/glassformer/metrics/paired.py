"""Is the difference between two systems on the same rows real?

Both answer the same rows, so the test is paired: what counts is where they differ. For rows that
are right or wrong, McNemar's test (1947), in its exact form, asks how often fair coins would fall
as unevenly as wins and losses do. For any other score, approximate randomisation (Noreen, 1989)
exchanges the two systems' answers on random rows and asks how often they then differ as much.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from glassformer.metrics.classification import (
    THRESHOLD,
    check_labels,
    check_multi_labels,
    f1_parts,
    macro_f1,
    multi_label_f1_parts,
)
from glassformer.metrics.intervals import (
    LEVEL,
    RESAMPLES,
    Groups,
    PerRow,
    Statistic,
    bootstrap,
    group_sums,
    portions,
    ratio,
    split_sums,
    table_of,
)
from glassformer.metrics.ratios import normal_deviations
from glassformer.metrics.score import Score

ROUNDING = 1e-12  # equal differences count as equal, whatever the order of their sums


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far the first system is above the second, and whether chance explains it.

    Attributes:
        difference: First minus second.
        p_value: How often chance alone would give a difference this large.
        wins: Rows that the first answers better.
        losses: Rows that the second answers better.
        ties: The others.
    """

    difference: Score
    p_value: float
    wins: int
    losses: int
    ties: int

    def as_values(self) -> dict[str, object]:
        """As plain values, for JSON."""
        return {
            "difference": self.difference.as_values(),
            "p_value": self.p_value,
            "wins": self.wins,
            "losses": self.losses,
            "ties": self.ties,
        }

    def __str__(self) -> str:
        low, high = self.difference.low, self.difference.high
        return (
            f"{self.difference.value:+.3f} [{low:+.3f}, {high:+.3f}], p = {self.p_value:.3g}; "
            f"{self.wins} better, {self.losses} worse, {self.ties} the same"
        )


def paired_test(
    first: Bool[np.ndarray, " N"],
    second: Bool[np.ndarray, " N"],
    *,
    groups: Groups | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Two systems by which rows each has right: the difference in accuracy, and McNemar's test.

    McNemar's test takes the rows for independent. Where they come in groups, whole groups are
    exchanged instead.

    >>> print(paired_test(np.arange(100) < 90, np.arange(100) < 80))
    +0.100 [+0.034, +0.162], p = 0.00195; 10 better, 0 worse, 90 the same
    """
    check_pair(len(first), len(second))
    gains = first.astype(np.int64) - second
    if groups is not None:
        ones = np.ones(len(first))
        return randomisation_test(
            ratio,
            (first, ones),
            (second, ones),
            better=gains,
            groups=groups,
            resamples=resamples,
            seed=seed,
        )
    wins, losses, ties = outcomes(gains)
    difference = share_difference(wins, losses, len(gains))
    return Comparison(difference, sign_test(wins, losses), wins, losses, ties)


def share_difference(wins: int, losses: int, rows: int, level: float = LEVEL) -> Score:
    """The difference of two shares of the same rows, and its interval. Bonett and Price, 2012.

    Two rows are added, a win and a loss, so the interval has a width even if no row differs.
    """
    more, fewer, total = wins + 1, losses + 1, rows + 2
    centre = (more - fewer) / total
    reach = normal_deviations(level) * math.sqrt(((more + fewer) / total - centre**2) / total)
    value = (wins - losses) / rows
    return Score(value, max(-1.0, min(centre - reach, value)), min(1.0, max(centre + reach, value)))


def randomisation_test(
    statistic: Statistic,
    first: Sequence[PerRow],
    second: Sequence[PerRow],
    *,
    better: Shaped[np.ndarray, " N"],
    groups: Groups | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Two systems by any score that is a function of sums over rows (see intervals).

    Args:
        first: What each row adds to the sums for the first system; `second` likewise.
        better: Above 0 where the first answers the row better, below 0 where the second does.
        groups: Rows of one group are exchanged and drawn together.
    """
    check_pair(len(first[0]), len(second[0]))

    def gap(*sums: np.ndarray) -> np.ndarray:
        return statistic(*sums[: len(first)]) - statistic(*sums[len(first) :])

    difference = bootstrap(gap, *first, *second, groups=groups, resamples=resamples, seed=seed)
    table, shapes = table_of([*first, *second])
    if groups is not None:
        table = group_sums(table, groups)
    extreme = 0
    for sums in exchanges(table, resamples, np.random.default_rng([seed, 1])):
        gaps = gap(*split_sums(sums, shapes))
        extreme += int((np.abs(gaps) >= abs(difference.value) - ROUNDING).sum())
    return Comparison(difference, (1 + extreme) / (1 + resamples), *outcomes(better))


def classification_comparison(
    labels: Int[np.ndarray, " N"],
    first: Float[np.ndarray, "N C"],
    second: Float[np.ndarray, "N C"],
    groups: Groups | None = None,
) -> dict[str, Comparison]:
    """Two classifiers by their probabilities: accuracy (McNemar) and macro_f1 (randomisation)."""
    check_labels(labels, first)
    check_labels(labels, second)
    answers = first.argmax(axis=1), second.argmax(axis=1)
    right = [given == labels for given in answers]
    parts = [f1_parts(labels, given, first.shape[1]) for given in answers]
    return compare(right, parts, groups)


def multi_label_comparison(
    labels: Shaped[np.ndarray, "N C"],
    first: Float[np.ndarray, "N C"],
    second: Float[np.ndarray, "N C"],
    groups: Groups | None = None,
) -> dict[str, Comparison]:
    """The same for rows with several labels: accuracy (all labels right) and macro_f1."""
    check_multi_labels(labels, first)
    check_multi_labels(labels, second)
    answers = first >= THRESHOLD, second >= THRESHOLD
    right = [(given == labels.astype(bool)).all(axis=1) for given in answers]
    parts = [multi_label_f1_parts(labels, given) for given in answers]
    return compare(right, parts, groups)


def compare(
    right: Sequence[np.ndarray], parts: Sequence[Sequence[np.ndarray]], groups: Groups | None
) -> dict[str, Comparison]:
    """Accuracy and macro-F1, from which rows are right and what rows add to the classes' F1."""
    gains = right[0].astype(np.int64) - right[1]
    return {
        "accuracy": paired_test(*right, groups=groups),
        "macro_f1": randomisation_test(macro_f1, *parts, better=gains, groups=groups),
    }


def exchanges(
    table: Float[np.ndarray, "N K"], resamples: int, random: np.random.Generator
) -> Iterator[Float[np.ndarray, "R K"]]:
    """Sums of both systems, side by side, after exchanging them on a random half of the rows."""
    half = table.shape[1] // 2
    turned = np.concatenate([table[:, half:], table[:, :half]], axis=1) - table
    for portion in portions(resamples, len(table)):
        chosen = random.integers(0, 2, (portion, len(table)), dtype=np.int8)
        yield table.sum(axis=0) + chosen.astype(np.float64) @ turned


def sign_test(wins: int, losses: int) -> float:
    """How often fair coins fall at least this unevenly, exactly, on both sides.

    >>> sign_test(0, 5)
    0.0625
    """
    tosses, fewer = wins + losses, min(wins, losses)
    if tosses == 0:
        return 1.0
    tail = sum(math.exp(log_chance(tosses, heads)) for heads in range(fewer + 1))
    return min(1.0, 2 * tail)


def log_chance(tosses: int, heads: int) -> float:
    """The logarithm of the chance of so many heads."""
    ways = math.lgamma(tosses + 1) - math.lgamma(heads + 1) - math.lgamma(tosses - heads + 1)
    return ways - tosses * math.log(2)


def outcomes(better: Shaped[np.ndarray, " N"]) -> tuple[int, int, int]:
    """Wins, losses and ties of the first system."""
    wins, losses = int((better > 0).sum()), int((better < 0).sum())
    return wins, losses, len(better) - wins - losses


def check_pair(first: int, second: int) -> None:
    """Refuse two systems that did not answer the same rows."""
    if first != second or first == 0:
        raise ValueError(
            f"a paired comparison needs both systems' answers to the same rows; got {first} and "
            f"{second} rows"
        )
