"""The expected calibration error, with an interval that covers. Naeini et al., 2015.

The error is the sum of |g| over the bins, where g is a bin's sum of (right - confidence). Chance
can only raise a |g| that is near 0, so the error of a calibrated model is above 0 and resampling
raises it once more. The interval follows from what chance can do. Let e be the error of g, normal,
with the deviation seen between the rows:

    up      the true sum exceeds the observed one by no more than the sum of the signed e
    down    it falls below by no more than the sum of |e|, whose mean is not 0

A bin whose g is clearly not 0 has a known sign, so its e counts with that sign both ways.
"""

import numpy as np
from jaxtyping import Bool, Float, Shaped

from glassformer.metrics.calibration import BINS, bin_index
from glassformer.metrics.intervals import LEVEL, Score, deviations, freedom_of, normal_deviations
from glassformer.metrics.units import ROWS, Units

CLEAR = 2.5  # standard deviations from 0 that make the sign of a bin's gap known


def calibration_error(
    confidence: Float[np.ndarray, "N C"], right: Shaped[np.ndarray, "N C"], units: Units = ROWS
) -> Score:
    """The mean distance between confidence and accuracy over bins of equal width.

    Args:
        confidence: One column for the predicted class, or one for every label.
    """
    columns = (right - confidence, np.ones(confidence.shape), right)
    gaps, answers, hits = (units.sums(_by_bin(confidence, x)) for x in columns)
    used = answers.any(0)
    gaps, answers, hits = gaps[:, used], answers[:, used], hits[:, used]
    deviation = _deviations(gaps, answers, hits)
    correlation = _correlations(gaps)
    clear = np.abs(gaps.sum(0)) > CLEAR * deviation
    value, z = np.abs(gaps.sum(0)).sum(), normal_deviations(LEVEL)
    if units.groups is not None:
        z = deviations(LEVEL, freedom_of(answers.sum(1)))
    up = max(deviation @ correlation @ deviation, deviation @ deviation)
    down = deviation @ _downward(correlation, clear) @ deviation
    bias = np.sqrt(2 / np.pi) * deviation[~clear].sum()  # the mean of |e|
    ends = np.array([value - bias - z * np.sqrt(down), value + z * np.sqrt(up)])
    low, high = np.clip(ends / confidence.size, 0, 1).tolist()
    return Score(float(value / confidence.size), low, high)


def _by_bin(
    confidence: Float[np.ndarray, "N C"], values: Shaped[np.ndarray, "N C"]
) -> Float[np.ndarray, "units bins"]:
    """The sum of the values of each row in each bin."""
    sums = np.zeros((len(confidence), BINS))
    rows = np.broadcast_to(np.arange(len(confidence))[:, None], confidence.shape)
    np.add.at(sums, (rows, bin_index(confidence)), values)
    return sums


def _deviations(
    gaps: Float[np.ndarray, "units used"],
    answers: Float[np.ndarray, "units used"],
    hits: Float[np.ndarray, "units used"],
) -> Float[np.ndarray, " used"]:
    """The standard deviation of each bin's sum of gaps.

    Two units that are all right and two that are all wrong are added (Agresti and Coull, 1998):
    a few answers that happen to be right may still be wrong the next time.
    """
    count = answers.sum(0)
    unit = (answers**2).sum(0) / count  # answers of a typical unit
    right = (hits.sum(0) + 2 * unit) / (count + 4 * unit)
    added = 2 * unit**2 * (right**2 + (1 - right) ** 2)
    variance = ((gaps - gaps.mean(0)) ** 2).sum(0) + added
    return np.sqrt(variance * count / (count + 4 * unit))


def _correlations(gaps: Float[np.ndarray, "units used"]) -> Float[np.ndarray, "used used"]:
    """How the bins' sums move together, each in the direction of its gap."""
    signed = (gaps - gaps.mean(0)) * np.sign(gaps.sum(0))
    scale = np.sqrt((signed**2).sum(0))
    scale[scale == 0] = 1  # bins without any spread are correlated with none
    found = np.clip(signed.T @ signed / np.outer(scale, scale), -1, 1)
    np.fill_diagonal(found, 1.0)
    return found


def _downward(
    correlation: Float[np.ndarray, "used used"], clear: Bool[np.ndarray, " used"]
) -> Float[np.ndarray, "used used"]:
    """Covariances of the errors, each standard normal: signed where clear, |e| elsewhere."""
    folded = 2 / np.pi * (np.sqrt(1 - correlation**2) + correlation * np.arcsin(correlation) - 1)
    both, neither = np.outer(clear, clear), np.outer(~clear, ~clear)
    return np.select([both, neither], [correlation, folded], 0.0)
