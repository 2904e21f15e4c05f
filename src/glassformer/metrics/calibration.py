"""Calibration: reliability bins, and temperature scaling. Guo et al., 2017.

Of the predictions with confidence 0.8, eight in ten should be right. A model is calibrated after
training by dividing its logits by a temperature, which changes no prediction, only its confidence.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

Labels = Shaped[np.ndarray, "N ..."]  # one class a row, or a 0 or 1 for every class (multi-label)
Logits = Float[np.ndarray, "N C"]
Probabilities = Float[np.ndarray, "N C"]

BINS = 15
# A few rows that are all right would call for infinite confidence.
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.2, 20.0
STEPS, TOLERANCE = 60, 1e-10


@dataclass(frozen=True, slots=True)
class Bin:
    """The predictions with confidence in (low, high], their mean confidence and accuracy."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def reliability(
    confidence: Float[np.ndarray, " N"], right: Shaped[np.ndarray, " N"], bins: int = BINS
) -> list[Bin]:
    """The bins that are not empty."""
    members = bin_index(confidence, bins)
    counts = np.bincount(members, minlength=bins)
    confidences = np.bincount(members, weights=confidence, minlength=bins)
    hits = np.bincount(members, weights=right, minlength=bins)
    return [
        Bin(
            low=index / bins,
            high=(index + 1) / bins,
            count=int(counts[index]),
            confidence=float(confidences[index] / counts[index]),
            accuracy=float(hits[index] / counts[index]),
        )
        for index in np.flatnonzero(counts)
    ]


def bin_index(confidence: Float[np.ndarray, "..."], bins: int = BINS) -> Int[np.ndarray, "..."]:
    """The bin of each confidence; 0 belongs to the first."""
    return np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)


def fit_temperature(logits: Logits, labels: Labels) -> float:
    """The temperature that minimises the log loss of logits / temperature.

    The loss is convex in 1 / temperature. Newton's method finds the minimum, and halving what
    encloses it takes over where Newton's steps do not shrink by half themselves.
    Never worse than a temperature of 1, which is returned if there are no rows.
    """
    if not np.isfinite(logits).all():
        raise ValueError("logits must be finite to fit a temperature; got NaN or infinity")
    if not len(logits):
        return 1.0
    logits = logits.astype(np.float64)
    low, high = 1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE
    sharpness, size = high, 2 * (high - low)
    for _ in range(STEPS):
        slope, curvature = loss_derivatives(logits, labels, sharpness)
        low, high = (low, sharpness) if slope > 0 else (sharpness, high)
        newton = sharpness - slope / curvature if curvature else np.copysign(np.inf, -slope)
        there = min(max(newton, low), high)
        if abs(there - sharpness) > size / 2:
            there = (low + high) / 2
        sharpness, size = there, abs(there - sharpness)
        if size < TOLERANCE:
            break
    found = float(1 / sharpness)
    better = log_loss(logits, labels, found) <= log_loss(logits, labels)
    return found if better else 1.0


def log_loss(logits: Logits, labels: Labels, temperature: float = 1.0) -> float:
    """Mean negative log-likelihood of the labels, in nats; over rows, and labels if multi-label."""
    return float(np.mean(row_losses(logits, labels, temperature)))


def row_losses(logits: Logits, labels: Labels, temperature: float = 1.0) -> Float[np.ndarray, " N"]:
    """The negative log-likelihood of each row, in nats; the mean over its labels if multi-label."""
    scaled = logits.astype(np.float64) / temperature
    if labels.ndim == 2:
        return np.mean(np.logaddexp(0, scaled) - labels * scaled, axis=1)
    target = np.take_along_axis(scaled, labels[:, None], axis=1)[:, 0]
    return np.logaddexp.reduce(scaled, axis=1) - target


def loss_derivatives(logits: Logits, labels: Labels, sharpness: float) -> tuple[float, float]:
    """The first and second derivatives of the log loss with respect to 1 / temperature."""
    multi_label = labels.ndim == 2
    given = to_probabilities(logits, 1 / sharpness, multi_label=multi_label)
    if multi_label:
        return float(np.mean((given - labels) * logits)), float(
            np.mean(given * (1 - given) * logits**2)
        )
    target = np.take_along_axis(logits, labels[:, None], axis=1)
    expected = np.sum(given * logits, axis=1, keepdims=True)
    variance = np.sum(given * (logits - expected) ** 2, axis=1)
    return float(np.mean(expected - target)), float(np.mean(variance))


def to_probabilities(
    logits: Logits, temperature: float = 1.0, *, multi_label: bool = False
) -> Probabilities:
    """The softmax of logits / temperature, or their sigmoid if multi-label."""
    scaled = logits.astype(np.float64, copy=False) / temperature
    if multi_label:
        return np.exp(-np.logaddexp(0, -scaled))
    return np.exp(scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True))
