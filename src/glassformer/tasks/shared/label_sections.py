"""The tables and charts of a report on a classifier."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from glassformer.metrics.calibration import Labels, Probabilities, reliability
from glassformer.metrics.classification import (
    THRESHOLD,
    Threshold,
    class_scores,
    confusion_intervals,
    confusion_matrix,
)
from glassformer.metrics.intervals import Score
from glassformer.metrics.ratios import share_score
from glassformer.metrics.units import ROWS, Units
from glassformer.reports.record import BY_CLASS, SOME_ROWS, HeatMap, Sections, Table
from glassformer.reports.tables import evenly, excerpt

MISTAKES = 10
FEW = 5  # rows of a class; an interval of fewer would mean nothing


def classification_sections(
    labels: Labels,
    probabilities: Probabilities,
    classes: Sequence[str],
    texts: Sequence[str],
    noun: str = "text",
    threshold: Threshold = THRESHOLD,
    units: Units = ROWS,
) -> Sections:
    """Scores by class, confusions, reliability, and the mistakes made with most confidence.

    Args:
        threshold: From which probability on a label is predicted, if multi-label.
        noun: What one of the texts is; the names of recordings may stand for them.
        units: What the texts are sampled by.
    """
    if labels.ndim == 2:
        return multi_label_sections(labels, probabilities, classes, texts, noun, threshold, units)
    answers, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
    wrong = answers != labels
    worst = [n for n in np.argsort(-sure, kind="stable") if wrong[n]][:MISTAKES]
    mistakes = [
        (excerpt(texts[n]), classes[labels[n]], classes[answers[n]], float(sure[n])) for n in worst
    ]
    matrix = confusion_matrix(labels, answers, len(classes))
    low, high = confusion_intervals(matrix) if units.groups is None else (None, None)
    heat_map = HeatMap(
        title="Confusions",
        names=list(classes),
        counts=matrix.tolist(),
        low=[] if low is None else low.tolist(),
        high=[] if high is None else high.tolist(),
    )
    tables = [
        class_table(labels, answers, classes, units),
        mistake_table(mistakes, int(wrong.sum()), noun),
    ]
    return Sections(
        tables=tables, heat_map=heat_map, reliability=reliability(sure, answers == labels)
    )


def multi_label_sections(
    labels: Labels,
    probabilities: Probabilities,
    classes: Sequence[str],
    texts: Sequence[str],
    noun: str,
    threshold: Threshold,
    units: Units = ROWS,
) -> Sections:
    """The same for multi-label, where a mistake is one label predicted or missed."""
    given, true = probabilities >= threshold, labels.astype(bool)
    sure = np.where(given, probabilities, 1 - probabilities)
    wrong = given != true
    places = np.argsort(-np.where(wrong, sure, -1), axis=None, kind="stable")
    rows, columns = np.unravel_index(places[: min(MISTAKES, int(wrong.sum()))], wrong.shape)
    mistakes = [
        (
            excerpt(texts[n]),
            classes[c] if true[n, c] else f"not {classes[c]}",
            classes[c] if given[n, c] else f"not {classes[c]}",
            float(sure[n, c]),
        )
        for n, c in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    tables = [
        class_table(labels, given, classes, units),
        mistake_table(mistakes, int(wrong.sum()), noun),
    ]
    return Sections(tables=tables, reliability=reliability(probabilities.ravel(), true.ravel()))


def class_table(
    labels: Labels, answers: Labels, classes: Sequence[str], units: Units = ROWS
) -> Table:
    """Precision, recall and F1 of each class, F1 with an interval where it has enough rows."""
    found = class_scores(labels, answers, len(classes))
    spread = [f1_interval(*members(labels, answers, n), units) for n in range(len(classes))]
    return Table(
        title=BY_CLASS,
        header=("class", "precision", "recall", "F1", "from", "to", "rows"),
        rows=[
            (
                *(name, one.precision, one.recall, one.f1),
                *(f1.interval if f1.interval and one.support >= FEW else (None, None)),
                one.support,
            )
            for name, one, f1 in zip(classes, found, spread, strict=True)
        ],
    )


def members(
    labels: Labels, answers: Labels, number: int
) -> tuple[Bool[np.ndarray, " N"], Bool[np.ndarray, " N"]]:
    """Which rows belong to a class, and which were predicted to."""
    if labels.ndim == 1:
        return labels == number, answers == number
    return labels[:, number].astype(bool), answers[:, number].astype(bool)


def f1_interval(
    true: Bool[np.ndarray, " N"], given: Bool[np.ndarray, " N"], units: Units = ROWS
) -> Score:
    """The F1 of one class, with its interval if there are enough groups that have it."""
    score = share_score(2 * (true & given), true.astype(np.int64) + given, units=units)
    if units.groups is None:
        return score
    having = true | given
    some = Units(units.noun, units.groups[having]) if having.any() else ROWS
    return some.judged("f1", score, int(having.sum()))


def mistake_table(mistakes: Sequence[tuple[str, str, str, float]], wrong: int, noun: str) -> Table:
    """The mistakes made with most confidence, where bad labels are often found."""
    return Table(
        title="The most confident mistakes",
        header=(noun, "label", "predicted", "confidence"),
        rows=mistakes,
        note=f"{len(mistakes)} of {wrong:,}." if mistakes else "No mistakes.",
    )


def side_by_side(
    labels: Labels,
    ours: tuple[Probabilities, Labels],
    theirs: tuple[Probabilities, Labels],
    classes: Sequence[str],
    texts: Sequence[str],
    noun: str = "text",
) -> Table:
    """Evenly spaced rows, with the predictions of both systems.

    Args:
        ours, theirs: The probabilities, and what is predicted.
    """
    return Table(
        title=SOME_ROWS,
        header=(noun, "label", "this model", "confidence", "baseline", "confidence "),
        rows=[
            (
                excerpt(texts[n]),
                class_names(labels[n], classes),
                *predicted(ours[0][n], ours[1][n], classes),
                *predicted(theirs[0][n], theirs[1][n], classes),
            )
            for n in evenly(len(texts))
        ],
    )


def class_names(truth: np.ndarray | np.integer, classes: Sequence[str]) -> str:
    """The name of a class, or the names of the classes in a row of 0 and 1."""
    if truth.ndim == 0:
        return classes[int(truth)]
    return ", ".join(classes[n] for n in np.flatnonzero(truth).tolist()) or "none"


def predicted(
    chances: Float[np.ndarray, " C"], given: np.ndarray | np.integer, classes: Sequence[str]
) -> tuple[str, float]:
    """A prediction in words, and its confidence.

    Args:
        given: The class, or a 0 or 1 for every class (multi-label).
    """
    if given.ndim == 0:
        return class_names(given, classes), float(chances[int(given)])
    return class_names(given, classes), float(np.where(given, chances, 1 - chances).min())
