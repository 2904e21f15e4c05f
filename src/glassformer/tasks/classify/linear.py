"""Linear models over counts of n-grams, one a class, by scikit-learn.

Every n-gram is weighted by the log-count ratio of naive Bayes, and a logistic regression learns the
rest. Wang and Manning, 2012.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from glassformer.tasks.shared.ngrams import Matrix, learn, scaled_columns

TOLERANCE = 0.1

Labels = Shaped[np.ndarray, "_ ..."]  # one class a row, or a 0 or 1 for every class


@dataclass(frozen=True, slots=True)
class LinearSettings:
    """How a linear model is fitted: its C, and the most rounds over the rows."""

    inverse_strength: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Linear:
    """One linear model a class; for two classes that exclude each other, one in all."""

    weights: Float[np.ndarray, "F K"]
    bias: Float[np.ndarray, " K"]

    def __call__(self, features: Matrix) -> Float[np.ndarray, "N K"]:
        return np.asarray(features @ self.weights) + self.bias


def members_of(labels: Labels, classes: int) -> Bool[np.ndarray, "N K"]:
    """Which rows each linear model should say yes to."""
    if labels.ndim == 2:
        return labels.astype(bool)
    each = labels[:, None] == np.arange(classes)
    return each[:, 1:] if classes == 2 else each


def row_weights(
    labels: Labels, members: Bool[np.ndarray, "N K"], class_weights: Float[np.ndarray, " C"] | None
) -> Float[np.ndarray, "N K"] | None:
    """What each row counts in each of the linear models; None if all count the same."""
    if class_weights is None:
        return None
    if labels.ndim == 2:
        return np.where(members, class_weights, 1.0)
    return np.broadcast_to(class_weights[labels][:, None], members.shape)


def fit_linear(
    features: Matrix,
    counts: Matrix,
    members: Bool[np.ndarray, "N K"],
    settings: LinearSettings,
    weights_of_rows: Float[np.ndarray, "N K"] | None = None,
) -> Linear:
    """A logistic regression a column of `members`, over features weighted by their ratios."""
    rows, models = members.shape
    weights, bias = np.zeros((features.shape[1], models)), np.zeros(models)
    rows_with = np.bincount(counts.indices, minlength=counts.shape[1])
    for number in range(models):
        inside = members[:, number]
        if not features.shape[1] or inside.all() or not inside.any():
            bias[number] = np.log(inside.sum() + 1) - np.log(rows - inside.sum() + 1)
            continue
        ratios = log_count_ratios(counts, inside, rows_with)
        count = None if weights_of_rows is None else weights_of_rows[:, number]
        fitted = logistic_regression(scaled_columns(features, ratios), inside, settings, count)
        weights[:, number] = fitted.coef_[0] * ratios
        bias[number] = fitted.intercept_[0]
    return Linear(weights, bias)


def log_count_ratios(
    counts: Matrix, inside: Bool[np.ndarray, " N"], rows_with: Int[np.ndarray, " F"]
) -> Float[np.ndarray, " F"]:
    """log((p / |p|) / (q / |q|)), where p and q count the rows inside and outside that have it.

    Args:
        rows_with: How many rows have it, inside or outside.
    """
    found = np.bincount(counts[inside].indices, minlength=counts.shape[1])
    p, q = 1 + found, 1 + rows_with - found
    return np.log(p / p.sum()) - np.log(q / q.sum())


def logistic_regression(
    features: Matrix,
    inside: Bool[np.ndarray, " N"],
    settings: LinearSettings,
    row_weights: Float[np.ndarray, " N"] | None,
) -> Any:
    """scikit-learn's, by coordinates of the dual: quick where columns outnumber rows."""
    model = learn("linear_model").LogisticRegression(
        C=settings.inverse_strength,
        solver="liblinear",
        dual=True,
        tol=TOLERANCE,
        max_iter=settings.rounds,
        random_state=0,
    )
    with warnings.catch_warnings():  # the last digits of the weights are not worth waiting for
        warnings.simplefilter("ignore", learn("exceptions").ConvergenceWarning)
        return model.fit(features, inside, sample_weight=row_weights)


def logits_of(
    scores: Float[np.ndarray, "N K"], classes: int, multi_label: bool
) -> Float[np.ndarray, "N C"]:
    """Scores of yes against no, as logits of one class among all, or of each by itself."""
    if multi_label:
        return scores
    if classes == 2:
        return np.concatenate([np.zeros_like(scores), scores], axis=1)
    return -np.logaddexp(0, -scores)


def logits_without(
    logits: Float[np.ndarray, "N C"], added: Float[np.ndarray, "M C"], multi_label: bool
) -> Float[np.ndarray, "M C"]:
    """What `logits_of` gives, up to a constant of each row, if what is added to the scores is not.

    Args:
        logits: One row for all that is left out, or one for each.
        added: To the score of each label; of two that exclude each other, half of it to either.
    """
    if multi_label or logits.shape[1] == 2:
        return logits - added
    with np.errstate(divide="ignore"):  # where a label is certain
        against = np.log(np.expm1(-logits))  # minus the scores
    return -np.logaddexp(0, against + added)
