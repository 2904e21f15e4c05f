"""The baseline: a logistic regression on pixels, its strength chosen on the validation rows.

A run keeps its weights in `pixels.safetensors`, used without scikit-learn.
"""

import math
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8
from safetensors import SafetensorError
from safetensors.numpy import save_file

from glassformer.data.images.fitting import resized
from glassformer.errors import GlassformerError
from glassformer.files import read_arrays, replacing
from glassformer.metrics.calibration import (
    Labels,
    Logits,
    Probabilities,
    log_loss,
    to_probabilities,
)
from glassformer.tasks.shared.ngrams import learn

TENSORS = "pixels.safetensors"
SIDE = 32  # pixels of the longer side, at most
STRENGTHS = (0.01, 0.1, 1.0)  # the inverse of the regularisation, as scikit-learn has it
TUNED_ON = 5_000  # rows, to choose one
ROUNDS = 200
FEW = 500  # rows that are always learned from
NEVER = -30.0  # the logit of a label that no training row has

Images = UInt8[np.ndarray, "_ height width channels"]  # train and valid differ in number
Features = Float[np.ndarray, "_ F"]


@dataclass(frozen=True, slots=True)
class PixelBaseline:
    """The weights of every pixel for every label.

    Attributes:
        multi: Whether an image has several labels.
        strength: The inverse of the regularisation.
        rows: How many it learned from, if it was just fitted.
    """

    weights: Float[np.ndarray, "F C"]
    bias: Float[np.ndarray, " C"]
    multi: bool
    strength: float
    rows: int = 0

    @staticmethod
    def fit(
        images: Images,
        labels: np.ndarray,
        valid: Images,
        valid_labels: np.ndarray,
        classes: int,
        seconds: float = math.inf,
    ) -> "PixelBaseline":
        """Fit to the training rows with the strength that suits the validation rows.

        Args:
            seconds: About; with less than all rows take, it learns from some of them.
        """
        order = np.random.default_rng(0).permutation(len(images))  # files mostly go by label
        if seconds < math.inf and len(images) > FEW:
            order = order[: rows_in(images[order], labels[order], classes, seconds)]
        images, labels = images[order], labels[order]
        features, best, least = pixel_features(images), STRENGTHS[-2], np.inf
        for strength in STRENGTHS if len(valid) else ():
            held = pixel_features(valid)
            some = slice(TUNED_ON)
            tried = _fitted(features[some], labels[some], classes, strength)
            if (loss := log_loss(tried._logits(held), valid_labels)) < least:
                best, least = strength, loss
        return replace(_fitted(features, labels, classes, best), rows=len(features))

    def probabilities(self, images: Images) -> Probabilities:
        """The probability of each label for each image."""
        return to_probabilities(self._logits(pixel_features(images)), multi_label=self.multi)

    def _logits(self, features: Features) -> Logits:
        return features @ self.weights.astype(np.float64) + self.bias

    def save(self, folder: Path) -> None:
        """Write the weights."""
        kinds = {"multi": np.array(self.multi), "strength": np.array(self.strength)}
        with replacing(folder / TENSORS) as half:
            save_file({"weights": self.weights, "bias": self.bias, **kinds}, half)

    @staticmethod
    def load(folder: Path) -> "PixelBaseline | None":
        """What `save` wrote; None if the run keeps no weights."""
        if not (folder / TENSORS).exists():
            return None
        try:
            found = read_arrays(folder / TENSORS)
            weights, bias = found["weights"], found["bias"]
            if weights.ndim != 2 or bias.shape != weights.shape[1:]:
                raise ValueError(f"weights of shape {weights.shape}, bias of shape {bias.shape}")
            return PixelBaseline(weights, bias, bool(found["multi"]), float(found["strength"]))
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise GlassformerError(
                f"{folder / TENSORS}: not the baseline of a run ({error}); copy the run again"
            ) from None


def _fitted(features: Features, labels: Labels, classes: int, strength: float) -> PixelBaseline:
    """A model of all labels, or, where an image has several, one of each."""
    multi, width = labels.ndim == 2, features.shape[1]
    weights = np.zeros((width, classes), dtype=np.float32)
    bias = np.full(classes, NEVER, dtype=np.float32)
    with warnings.catch_warnings():  # the last digits of the weights are not worth waiting for
        warnings.simplefilter("ignore", learn("exceptions").ConvergenceWarning)
        for number, column in enumerate(labels.T if multi else [labels]):
            present = np.unique(column)
            places = [number] if multi else present
            if len(present) == 1:
                bias[places] = NEVER if multi and not present[0] else -NEVER
                continue
            model: Any = learn("linear_model").LogisticRegression(C=strength, max_iter=ROUNDS)
            model.fit(features, column)
            coefficients, intercepts = model.coef_, model.intercept_
            if not multi and len(present) == 2:  # one row stands for the second of two
                coefficients = np.vstack([np.zeros(width), coefficients])
                intercepts = np.append(0.0, intercepts)
            weights[:, places], bias[places] = coefficients.T, intercepts
    return PixelBaseline(weights, bias, multi, strength)


def seconds_of_few(images: Images, labels: Labels, classes: int) -> float:
    """The time of a fit to the first few of these rows."""
    began = time.perf_counter()
    _fitted(pixel_features(images[:FEW]), labels[:FEW], classes, STRENGTHS[-2])
    return time.perf_counter() - began


def rows_in(images: Images, labels: Labels, classes: int, seconds: float) -> int:
    """How many rows, in random order, can be learned from in this time, by a fit to a few."""
    passes = int((seconds / max(seconds_of_few(images, labels, classes), 1e-9) - 1) * FEW)
    tuning = len(STRENGTHS) * min(TUNED_ON, len(images))
    if passes >= tuning + len(images):
        return len(images)
    return min(len(images), max(FEW, passes // (len(STRENGTHS) + 1)))


def pixel_features(images: Images) -> Features:
    """The pixels of each image from 0 to 1, scaled down if it is large."""
    height, width = images.shape[1:3]
    scale = min(1.0, SIDE / max(height, width))
    size = max(1, round(height * scale)), max(1, round(width * scale))
    small = images if scale == 1 else np.stack([resized(image, *size) for image in images])
    return small.reshape(len(images), -1).astype(np.float64) / 255


def chosen_rows(rows: Int[np.ndarray, " N"], most: int, seed: int) -> Int[np.ndarray, " some"]:
    """Some rows of many, in order."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).permutation(rows)[:most])
