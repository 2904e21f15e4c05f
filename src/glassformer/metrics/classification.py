"""How good a classifier is, on its own rows: accuracy, F1 by class, confusions, calibration.

Macro-F1 is the mean over the classes that occur in the truth or in the answers, as in scikit-learn;
a class that does neither says nothing. The same holds for the labels of a multi-label job.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from glassformer.metrics.calibration_error import calibration_error
from glassformer.metrics.intervals import Groups
from glassformer.metrics.ratios import share_score, wilson
from glassformer.metrics.score import Score

THRESHOLD = 0.5  # a label is given from this probability on


@dataclass(frozen=True, slots=True)
class ClassScores:
    """One class: how often it was rightly named, how often found, and how many rows it has."""

    precision: float
    recall: float
    f1: float
    support: int


def classification_scores(
    labels: Int[np.ndarray, " N"],
    probabilities: Float[np.ndarray, "N C"],
    groups: Groups | None = None,
) -> dict[str, Score]:
    """accuracy, macro_f1 and calibration_error, each with its interval.

    Args:
        groups: Rows of one group (the reviews of one film) are not independent; the intervals then
            say how the scores would move with other groups.
    """
    check_labels(labels, probabilities)
    predictions = probabilities.argmax(axis=1)
    rows, counts = tally(np.stack([labels, predictions], axis=1), groups)
    hits, named = f1_parts(rows[:, 0], rows[:, 1], probabilities.shape[1])
    right, ones = rows[:, 0] == rows[:, 1], np.ones(len(rows))
    confidence = probabilities.max(axis=1, keepdims=True)
    return {
        "accuracy": share_score(right, ones, groups=groups, counts=counts),
        "macro_f1": share_score(2 * hits, named, groups=groups, counts=counts),
        "calibration_error": calibration_error(
            confidence, (predictions == labels)[:, None], groups
        ),
    }


def multi_label_scores(
    labels: Shaped[np.ndarray, "N C"],
    probabilities: Float[np.ndarray, "N C"],
    groups: Groups | None = None,
) -> dict[str, Score]:
    """accuracy (all labels of a row right), macro_f1, micro_f1 and calibration_error."""
    check_multi_labels(labels, probabilities)
    given = probabilities >= THRESHOLD
    hits, named = multi_label_f1_parts(labels, given)
    exact, ones = (labels.astype(bool) == given).all(axis=1), np.ones(len(labels))
    return {
        "accuracy": share_score(exact, ones, groups=groups),
        "macro_f1": share_score(2 * hits, named, groups=groups),
        "micro_f1": share_score(2 * hits.sum(axis=1), named.sum(axis=1), groups=groups),
        "calibration_error": calibration_error(probabilities, labels, groups),
    }


def confusion_matrix(
    labels: Int[np.ndarray, " N"], answers: Int[np.ndarray, " N"], classes: int
) -> Int[np.ndarray, "C C"]:
    """How many rows of each class (down) were called each class (across)."""
    pairs = np.bincount(labels * classes + answers, minlength=classes * classes)
    return pairs.reshape(classes, classes)


def confusion_intervals(
    matrix: Int[np.ndarray, "C C"],
) -> tuple[Int[np.ndarray, "C C"], Int[np.ndarray, "C C"]]:
    """The interval of each cell's count, taken as a share of all rows."""
    rows = int(matrix.sum())
    if not rows:
        return matrix, matrix
    low, high = np.rint(rows * wilson(matrix / rows, float(rows))).astype(np.int64)
    return low, high


def class_scores(
    labels: Shaped[np.ndarray, "N ..."], answers: Shaped[np.ndarray, "N ..."], classes: int
) -> list[ClassScores]:
    """Precision, recall, F1 and support of each class; 0 where there is nothing to divide by.

    Args:
        labels: One class a row, or a 0 or 1 for every class (multi-label); answers likewise.
    """
    if labels.ndim == 1:
        hits = np.bincount(labels[labels == answers], minlength=classes)
        true, given = (np.bincount(side, minlength=classes) for side in (labels, answers))
    else:
        hits = (labels.astype(bool) & answers.astype(bool)).sum(axis=0)
        true, given = labels.astype(np.int64).sum(axis=0), answers.astype(np.int64).sum(axis=0)
    precision, recall = share(hits, given), share(hits, true)
    f1 = share(2 * hits, true + given)
    columns = zip(precision.tolist(), recall.tolist(), f1.tolist(), true.tolist(), strict=True)
    return [ClassScores(*row) for row in columns]


def macro_f1(hits: Float[np.ndarray, "R C"], named: Float[np.ndarray, "R C"]) -> np.ndarray:
    """Mean F1 of the classes that occur, from what was right and what was true plus given."""
    return share(share(2 * hits, named).sum(axis=1), (named > 0).sum(axis=1))


def f1_parts(
    labels: Int[np.ndarray, " N"], answers: Int[np.ndarray, " N"], classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """What each row adds to its classes: a right answer; a class that was true or given."""
    each = np.eye(classes)
    return each[labels] * (labels == answers)[:, None], each[labels] + each[answers]


def multi_label_f1_parts(
    labels: Shaped[np.ndarray, "N C"], given: Shaped[np.ndarray, "N C"]
) -> tuple[np.ndarray, np.ndarray]:
    """The same for rows with a 0 or 1 for every label."""
    labels, given = labels.astype(np.int64), given.astype(np.int64)
    return labels * given, labels + given


def tally(
    rows: Int[np.ndarray, "N K"], groups: Groups | None
) -> tuple[Int[np.ndarray, "M K"], Int[np.ndarray, " M"] | None]:
    """The different rows and how many there are of each; rows that have groups stay as they are.

    A classifier of C classes gives at most C x C different rows, so that drawing them again is
    quick however many there are.
    """
    if groups is not None:
        return rows, None
    return np.unique(rows, axis=0, return_counts=True)


def share(part: np.ndarray | np.integer, whole: np.ndarray | np.integer) -> np.ndarray:
    """A part of a whole, 0 where there is no whole."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0)


def check_labels(labels: np.ndarray, probabilities: np.ndarray) -> None:
    """Refuse what no score could be made of."""
    check_probabilities(len(labels), probabilities)
    classes = probabilities.shape[1]
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"labels must lie in 0 ... {classes - 1}, as there are {classes} columns of "
            f"probabilities; got {labels.min()} ... {labels.max()}"
        )


def check_multi_labels(labels: np.ndarray, probabilities: np.ndarray) -> None:
    """Refuse what no score could be made of."""
    check_probabilities(len(labels), probabilities)
    if labels.shape != probabilities.shape or not np.isin(labels, (0, 1)).all():
        raise ValueError(
            f"multi-label rows need a 0 or 1 for each of the {probabilities.shape[1]} labels; "
            f"got an array of shape {labels.shape} with values up to {labels.max()}"
        )


def check_probabilities(rows: int, probabilities: np.ndarray) -> None:
    """Refuse rows without probabilities, and probabilities that are none."""
    if rows == 0 or rows != len(probabilities):
        raise ValueError(
            f"scores need at least one row, and probabilities for each; got {rows} labels and "
            f"{len(probabilities)} rows of probabilities"
        )
    if not ((probabilities >= 0) & (probabilities <= 1 + 1e-6)).all():
        raise ValueError("probabilities must lie in 0 ... 1; got some that do not, or are NaN")
