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
from glassformer.metrics.units import ROWS, Units

THRESHOLD = 0.5  # one of several labels is predicted from this probability on, if none is chosen
THRESHOLDS = np.arange(1, 100) / 100  # to choose from
FEW_TO_CHOOSE = 20  # rows; fewer choose no threshold

Threshold = float | Float[np.ndarray, "N 1"]


@dataclass(frozen=True, slots=True)
class ClassScores:
    """The scores of one class, and how many rows have it."""

    precision: float
    recall: float
    f1: float
    support: int


def classification_scores(
    labels: Labels,
    probabilities: Probabilities,
    threshold: Threshold = THRESHOLD,
    units: Units = ROWS,
) -> dict[str, Score]:
    """accuracy, macro_f1 and calibration_error, each with an interval; micro_f1 if multi-label.

    Args:
        labels: One class a row, or a 0 or 1 for every class (multi-label); then accuracy is the
            share of rows with all of them right.
        threshold: From which probability on a label is predicted, if multi-label.
        units: What the rows are sampled by.
    """
    check_labels(labels, probabilities)
    predictions = predicted_classes(labels, probabilities, threshold)
    found = {
        name: units.judged("share" if name == "accuracy" else "f1", score, len(labels))
        for name, score in _shares(labels, predictions, probabilities.shape[1], units).items()
    }
    confidence, right = probabilities, labels
    if labels.ndim == 1:
        confidence, right = probabilities.max(1, keepdims=True), (predictions == labels)[:, None]
    error = calibration_error(confidence, right, units)
    return found | {"calibration_error": units.judged("calibration", error, len(labels))}


def _shares(labels: Labels, predictions: Labels, classes: int, units: Units) -> dict[str, Score]:
    """Accuracy and F1, which are shares."""
    pairs, counts = (labels, predictions), None
    if labels.ndim == 1 and not units.several:  # few are distinct, so it is quick for many rows
        distinct, counts = np.unique(np.stack(pairs, axis=1), axis=0, return_counts=True)
        pairs = distinct[:, 0], distinct[:, 1]
    hits, totals = f1_counts(*pairs, classes)
    right = right_rows(*pairs)
    scores = {
        "accuracy": share_score(right, np.ones(len(right)), counts=counts, units=units),
        "macro_f1": share_score(2 * hits, totals, counts=counts, units=units),
    }
    if labels.ndim == 2:
        scores["micro_f1"] = share_score(2 * hits.sum(axis=1), totals.sum(axis=1), units=units)
    return scores


def predicted_classes(
    labels: Labels, probabilities: Probabilities, threshold: Threshold = THRESHOLD
) -> Labels:
    """The predictions in the form of the labels."""
    return probabilities >= threshold if labels.ndim == 2 else probabilities.argmax(axis=1)


def choose_threshold(labels: Labels, probabilities: Probabilities) -> float:
    """The threshold for all labels with the largest sum of accuracy and micro-F1 on these rows.

    Both are reported. Thresholds of each label by itself, for its F1, cost more accuracy than they
    gain in macro-F1 (docs/dev/log.md). Of equal ones the nearest to 0.5, which is also the answer
    where there are fewer than 20 rows, or where labels exclude each other.
    """
    if labels.ndim == 1 or len(labels) < FEW_TO_CHOOSE:
        return THRESHOLD
    quality = accuracy_and_micro_f1(labels, probabilities)
    best = THRESHOLDS[quality >= quality.max() - 1e-12]
    return float(best[np.abs(best - THRESHOLD).argmin()])


def accuracy_and_micro_f1(
    labels: Labels, probabilities: Probabilities
) -> Float[np.ndarray, " thresholds"]:
    """The sum of both at each of THRESHOLDS, of labels that do not exclude each other."""
    truth = labels.astype(bool)
    reached = np.searchsorted(THRESHOLDS, probabilities, side="right")  # how many thresholds
    first = np.where(truth, 0, reached).max(axis=1)  # from which on no label too many is named
    last = np.where(truth, reached, len(THRESHOLDS)).min(axis=1)  # up to which none is missed
    places = np.arange(len(THRESHOLDS))[:, None]
    accuracy = ((first <= places) & (places < last)).mean(axis=1)
    hits, named = (
        np.bincount(some.ravel(), minlength=len(THRESHOLDS) + 1)[::-1].cumsum()[-2::-1]
        for some in (reached[truth], reached)
    )
    return accuracy + safe_divide(2 * hits, truth.sum() + named)


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
