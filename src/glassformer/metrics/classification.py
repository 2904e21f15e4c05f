"""Scores of a classifier: accuracy, F1 by class, confusions, calibration.

Macro-F1 is the mean over the classes that occur in the labels or in the predictions, as in
scikit-learn. The same holds for the labels of a multi-label job.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from glassformer.metrics.calibration import Labels, Probabilities
from glassformer.metrics.calibration_error import calibration_error
from glassformer.metrics.intervals import Score
from glassformer.metrics.ratios import share_score, wilson

THRESHOLD = 0.5  # a label is predicted from this probability on


@dataclass(frozen=True, slots=True)
class ClassScores:
    """The scores of one class, and how many rows have it."""

    precision: float
    recall: float
    f1: float
    support: int


def classification_scores(labels: Labels, probabilities: Probabilities) -> dict[str, Score]:
    """accuracy, macro_f1 and calibration_error, each with an interval; micro_f1 if multi-label.

    Args:
        labels: One class a row, or a 0 or 1 for every class (multi-label); then accuracy is the
            share of rows with all of them right.
    """
    check_labels(labels, probabilities)
    predictions = predicted_classes(labels, probabilities)
    pairs, counts = (labels, predictions), None
    if labels.ndim == 1:  # few are distinct, so it is quick for many rows
        distinct, counts = np.unique(np.stack(pairs, axis=1), axis=0, return_counts=True)
        pairs = distinct[:, 0], distinct[:, 1]
    hits, totals = f1_counts(*pairs, probabilities.shape[1])
    right = right_rows(*pairs)
    scores = {
        "accuracy": share_score(right, np.ones(len(right)), counts=counts),
        "macro_f1": share_score(2 * hits, totals, counts=counts),
    }
    if labels.ndim == 2:
        scores["micro_f1"] = share_score(2 * hits.sum(axis=1), totals.sum(axis=1))
        return scores | {"calibration_error": calibration_error(probabilities, labels)}
    confidence, hit = probabilities.max(axis=1, keepdims=True), (predictions == labels)[:, None]
    return scores | {"calibration_error": calibration_error(confidence, hit)}


def predicted_classes(labels: Labels, probabilities: Probabilities) -> Labels:
    """The predictions in the form of the labels."""
    return probabilities >= THRESHOLD if labels.ndim == 2 else probabilities.argmax(axis=1)


def right_rows(labels: Labels, predictions: Labels) -> Bool[np.ndarray, " N"]:
    """The rows that are right, with all their labels."""
    same = labels == predictions
    return same.all(axis=1) if same.ndim == 2 else same


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


def class_scores(labels: Labels, predictions: Labels, classes: int) -> list[ClassScores]:
    """Precision, recall, F1 and support of each class; 0 where they are undefined."""
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


def f1_counts(labels: Labels, predictions: Labels, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """What each row adds to the hits of its classes, and to their totals (true plus predicted)."""
    if labels.ndim == 1:
        labels, predictions = np.eye(classes)[labels], np.eye(classes)[predictions]
    else:
        labels, predictions = labels.astype(np.int64), predictions.astype(np.int64)
    return labels * predictions, labels + predictions


def safe_divide(part: np.ndarray | np.integer, whole: np.ndarray | np.integer) -> np.ndarray:
    """part / whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0)


def check_labels(labels: Labels, probabilities: Probabilities) -> None:
    """Refuse labels and probabilities that do not fit."""
    if not len(labels) or len(labels) != len(probabilities):
        raise ValueError(
            f"scores need at least one row, and probabilities for each; got {len(labels)} labels "
            f"and {len(probabilities)} rows of probabilities"
        )
    if not ((probabilities >= 0) & (probabilities <= 1 + 1e-6)).all():
        raise ValueError("probabilities must lie in 0 ... 1; got some that do not, or are NaN")
    classes = probabilities.shape[1]
    most = classes - 1 if labels.ndim == 1 else 1
    fits = labels.ndim == 1 or labels.shape == probabilities.shape
    if not fits or labels.min() < 0 or labels.max() > most:
        raise ValueError(
            f"with {classes} columns of probabilities, labels must lie in 0 ... {classes - 1}, or "
            f"be a 0 or 1 for each column; got {labels.min()} ... {labels.max()}, of shape "
            f"{labels.shape}"
        )
