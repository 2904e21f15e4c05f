"""Scores of a classifier: accuracy, F1 by class, confusions, calibration.

Macro-F1 is the mean over the classes that occur in the labels or in the predictions, as in
scikit-learn. The same holds for the labels of a multi-label job.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from glassformer.metrics.calibration_error import calibration_error
from glassformer.metrics.intervals import Groups
from glassformer.metrics.ratios import share_score, wilson
from glassformer.metrics.score import Score

THRESHOLD = 0.5  # a label is predicted from this probability on


@dataclass(frozen=True, slots=True)
class ClassScores:
    """The scores of one class, and how many rows have it."""

    precision: float
    recall: float
    f1: float
    support: int


def classification_scores(
    labels: Int[np.ndarray, " N"],
    probabilities: Float[np.ndarray, "N C"],
    groups: Groups | None = None,
) -> dict[str, Score]:
    """accuracy, macro_f1 and calibration_error, each with an interval.

    Args:
        groups: Rows of one group (the reviews of one film) are not independent; the intervals then
            say how the scores would change with other groups.
    """
    check_labels(labels, probabilities)
    predictions = probabilities.argmax(axis=1)
    rows, counts = count_pairs(np.stack([labels, predictions], axis=1), groups)
    hits, totals = f1_counts(rows[:, 0], rows[:, 1], probabilities.shape[1])
    right, ones = rows[:, 0] == rows[:, 1], np.ones(len(rows))
    confidence = probabilities.max(axis=1, keepdims=True)
    return {
        "accuracy": share_score(right, ones, groups=groups, counts=counts),
        "macro_f1": share_score(2 * hits, totals, groups=groups, counts=counts),
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
    predicted = probabilities >= THRESHOLD
    hits, totals = multi_label_f1_counts(labels, predicted)
    exact, ones = (labels.astype(bool) == predicted).all(axis=1), np.ones(len(labels))
    return {
        "accuracy": share_score(exact, ones, groups=groups),
        "macro_f1": share_score(2 * hits, totals, groups=groups),
        "micro_f1": share_score(2 * hits.sum(axis=1), totals.sum(axis=1), groups=groups),
        "calibration_error": calibration_error(probabilities, labels, groups),
    }


def confusion_matrix(
    labels: Int[np.ndarray, " N"], predictions: Int[np.ndarray, " N"], classes: int
) -> Int[np.ndarray, "C C"]:
    """How many rows of each class (down) were predicted as each class (across)."""
    pairs = np.bincount(labels * classes + predictions, minlength=classes * classes)
    return pairs.reshape(classes, classes)


def confusion_intervals(
    matrix: Int[np.ndarray, "C C"],
) -> tuple[Int[np.ndarray, "C C"], Int[np.ndarray, "C C"]]:
    """The interval of each cell's count, as a share of all rows."""
    rows = int(matrix.sum())
    if not rows:
        return matrix, matrix
    low, high = np.rint(rows * wilson(matrix / rows, float(rows))).astype(np.int64)
    return low, high


def class_scores(
    labels: Shaped[np.ndarray, "N ..."], predictions: Shaped[np.ndarray, "N ..."], classes: int
) -> list[ClassScores]:
    """Precision, recall, F1 and support of each class; 0 where they are undefined.

    Args:
        labels: One class a row, or a 0 or 1 for every class (multi-label); predictions likewise.
    """
    if labels.ndim == 1:
        hits = np.bincount(labels[labels == predictions], minlength=classes)
        true, predicted = (np.bincount(side, minlength=classes) for side in (labels, predictions))
    else:
        hits = (labels.astype(bool) & predictions.astype(bool)).sum(axis=0)
        true, predicted = (side.astype(np.int64).sum(axis=0) for side in (labels, predictions))
    precision, recall = safe_divide(hits, predicted), safe_divide(hits, true)
    f1 = safe_divide(2 * hits, true + predicted)
    columns = zip(precision.tolist(), recall.tolist(), f1.tolist(), true.tolist(), strict=True)
    return [ClassScores(*row) for row in columns]


def macro_f1(hits: Float[np.ndarray, "R C"], totals: Float[np.ndarray, "R C"]) -> np.ndarray:
    """Mean F1 of the classes that occur, from hits and totals (true plus predicted)."""
    return safe_divide(safe_divide(2 * hits, totals).sum(axis=1), (totals > 0).sum(axis=1))


def f1_counts(
    labels: Int[np.ndarray, " N"], predictions: Int[np.ndarray, " N"], classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """What each row adds to the hits of its classes, and to their totals (true plus predicted)."""
    each = np.eye(classes)
    return each[labels] * (labels == predictions)[:, None], each[labels] + each[predictions]


def multi_label_f1_counts(
    labels: Shaped[np.ndarray, "N C"], predicted: Shaped[np.ndarray, "N C"]
) -> tuple[np.ndarray, np.ndarray]:
    """The same for rows with a 0 or 1 for every label."""
    labels, predicted = labels.astype(np.int64), predicted.astype(np.int64)
    return labels * predicted, labels + predicted


def count_pairs(
    rows: Int[np.ndarray, "N K"], groups: Groups | None
) -> tuple[Int[np.ndarray, "M K"], Int[np.ndarray, " M"] | None]:
    """The distinct rows and their counts; rows with groups stay as they are.

    A classifier of C classes has at most C x C distinct rows, so scores are quick for any number.
    """
    if groups is not None:
        return rows, None
    return np.unique(rows, axis=0, return_counts=True)


def safe_divide(part: np.ndarray | np.integer, whole: np.ndarray | np.integer) -> np.ndarray:
    """part / whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0)


def check_labels(labels: np.ndarray, probabilities: np.ndarray) -> None:
    """Refuse labels and probabilities that do not fit."""
    check_probabilities(len(labels), probabilities)
    classes = probabilities.shape[1]
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"labels must lie in 0 ... {classes - 1}, as there are {classes} columns of "
            f"probabilities; got {labels.min()} ... {labels.max()}"
        )


def check_multi_labels(labels: np.ndarray, probabilities: np.ndarray) -> None:
    """Refuse labels and probabilities that do not fit."""
    check_probabilities(len(labels), probabilities)
    if labels.shape != probabilities.shape or not np.isin(labels, (0, 1)).all():
        raise ValueError(
            f"multi-label rows need a 0 or 1 for each of the {probabilities.shape[1]} labels; "
            f"got an array of shape {labels.shape} with values up to {labels.max()}"
        )


def check_probabilities(rows: int, probabilities: np.ndarray) -> None:
    """Refuse a wrong number of probabilities, and values outside 0 ... 1."""
    if rows == 0 or rows != len(probabilities):
        raise ValueError(
            f"scores need at least one row, and probabilities for each; got {rows} labels and "
            f"{len(probabilities)} rows of probabilities"
        )
    if not ((probabilities >= 0) & (probabilities <= 1 + 1e-6)).all():
        raise ValueError("probabilities must lie in 0 ... 1; got some that do not, or are NaN")
