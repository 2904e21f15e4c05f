"""The baseline: a logistic regression on pixels, its strength chosen on the validation rows."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from glassformer.data.images.fitting import resized
from glassformer.metrics.calibration import Labels, Probabilities, log_loss
from glassformer.tasks.shared.ngrams import learn

SIDE = 32  # pixels of the longer side, at most
STRENGTHS = (0.01, 0.1, 1.0)  # the inverse of the regularisation, as scikit-learn has it
TUNED_ON = 5_000  # rows, to choose one
ROUNDS = 200
LEAST = 1e-12  # probability

Images = UInt8[np.ndarray, "N height width channels"]
Features = Float[np.ndarray, "N F"]


@dataclass(frozen=True, slots=True)
class PixelBaseline:
    """Fitted models: one for all labels, or one for each where an image has several."""

    models: list[Any]
    classes: int
    strength: float

    @staticmethod
    def fit(
        images: Images, labels: Labels, valid: Images, valid_labels: Labels, classes: int
    ) -> "PixelBaseline":
        """Fit to the training rows with the strength that suits the validation rows."""
        features, held = pixel_features(images), pixel_features(valid)
        best, least = STRENGTHS[-2], np.inf
        for strength in STRENGTHS if len(valid) else ():
            some = slice(TUNED_ON)
            tried = PixelBaseline(_fitted(features[some], labels[some], strength), classes, 0.0)
            chances = np.clip(tried._chances(held), LEAST, 1 - LEAST)
            logits = np.log(chances) - (np.log1p(-chances) if labels.ndim == 2 else 0)
            if (loss := log_loss(logits, valid_labels)) < least:
                best, least = strength, loss
        return PixelBaseline(_fitted(features, labels, best), classes, best)

    def probabilities(self, images: Images) -> Probabilities:
        """The probability of each label for each image."""
        return self._chances(pixel_features(images))

    def _chances(self, features: Features) -> Probabilities:
        if len(self.models) == 1 and self.models[0].classes_.tolist() != [False, True]:
            found = np.zeros((len(features), self.classes))
            found[:, self.models[0].classes_] = self.models[0].predict_proba(features)
            return found
        each = [one.predict_proba(features)[:, -1] for one in self.models]
        return np.stack(each, axis=1)


def _fitted(features: Features, labels: Labels, strength: float) -> list[Any]:
    columns = [labels] if labels.ndim == 1 else [column.astype(bool) for column in labels.T]
    model, found = learn("linear_model").LogisticRegression, []
    with warnings.catch_warnings():  # the last digits of the weights are not worth waiting for
        warnings.simplefilter("ignore", learn("exceptions").ConvergenceWarning)
        for column in columns:
            if len(np.unique(column)) > 1:
                one = model(C=strength, max_iter=ROUNDS)
            else:
                one = learn("dummy").DummyClassifier()
            found.append(one.fit(features, column))
    return found


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
