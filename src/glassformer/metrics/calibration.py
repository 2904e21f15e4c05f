"""Whether confidence is deserved, and the one number that mends it. Guo et al., 2017.

Of the answers given with confidence 0.8, eight in ten should be right. The calibration error is the
mean distance from that, over bins of equal width. A model is calibrated after training by dividing
its logits by a temperature, which changes no answer, only how sure it sounds.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

BINS = 15
SHARPEST, FLATTEST = 0.2, 20.0  # a few rows, all answered well, would ask for endless confidence
HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Bin:
    """The answers whose confidence lies in (low, high]: how sure they were, how often right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def reliability(
    confidence: Float[np.ndarray, " N"], right: Shaped[np.ndarray, " N"], bins: int = BINS
) -> list[Bin]:
    """One entry a bin, empty ones left out."""
    number = bin_of(confidence, bins)
    counts = np.bincount(number, minlength=bins)
    sure = np.bincount(number, weights=confidence, minlength=bins)
    hits = np.bincount(number, weights=right, minlength=bins)
    return [
        Bin(
            low=index / bins,
            high=(index + 1) / bins,
            count=int(counts[index]),
            confidence=float(sure[index] / counts[index]),
            accuracy=float(hits[index] / counts[index]),
        )
        for index in np.flatnonzero(counts)
    ]


def bin_of(confidence: Float[np.ndarray, "..."], bins: int = BINS) -> Int[np.ndarray, "..."]:
    """The bin of each confidence; 0 goes to the first."""
    return np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)


def fit_temperature(
    logits: Float[np.ndarray, "N C"],
    labels: Int[np.ndarray, " N"] | Shaped[np.ndarray, "N C"],
) -> float:
    """The temperature that makes the log loss of logits / temperature least.

    The loss is convex in 1 / temperature, so halving an interval by the sign of its slope finds the
    lowest point. Never worse than leaving the logits alone; 1 when there are no rows.

    Args:
        labels: One class a row, or a 0 or 1 for every class (multi-label).
    """
    if not np.isfinite(logits).all():
        raise ValueError("a temperature needs finite logits; got some that are not")
    if not len(logits):
        return 1.0
    low, high = np.log(1 / FLATTEST), np.log(1 / SHARPEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if loss_slope(logits, labels, np.exp(middle)) > 0:
            high = middle
        else:
            low = middle
    found = float(np.exp(-(low + high) / 2))
    better = log_loss(logits, labels, found) <= log_loss(logits, labels)
    return found if better else 1.0


def log_loss(
    logits: Float[np.ndarray, "N C"],
    labels: Int[np.ndarray, " N"] | Shaped[np.ndarray, "N C"],
    temperature: float = 1.0,
) -> float:
    """Mean surprise at the truth, in nats; over rows and classes when multi-label."""
    scaled = logits.astype(np.float64) / temperature
    if labels.ndim == 2:
        return float(np.mean(np.logaddexp(0, scaled) - labels * scaled))
    truth = np.take_along_axis(scaled, labels[:, None], axis=1)[:, 0]
    return float(np.mean(np.logaddexp.reduce(scaled, axis=1) - truth))


def loss_slope(logits: np.ndarray, labels: np.ndarray, sharpness: float) -> float:
    """The derivative of the log loss by 1 / temperature."""
    logits = logits.astype(np.float64)
    expected = probabilities_of(logits, 1 / sharpness, multi_label=labels.ndim == 2) * logits
    if labels.ndim == 2:
        return float(np.mean(expected - labels * logits))
    truth = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    return float(np.mean(expected.sum(axis=1) - truth))


def probabilities_of(
    logits: Float[np.ndarray, "N C"], temperature: float = 1.0, *, multi_label: bool = False
) -> Float[np.ndarray, "N C"]:
    """What the logits say at this temperature: one of the classes, or each by itself."""
    scaled = logits.astype(np.float64) / temperature
    if multi_label:
        return np.exp(-np.logaddexp(0, -scaled))
    return np.exp(scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True))
