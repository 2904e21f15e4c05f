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

Images = UInt8[np.ndarray, "_ height width channels"]  # train and valid differ in number
Features = Float[np.ndarray, "_ F"]


@dataclass(frozen=True, slots=True)
class PixelBaseline:
    """Fitted models: one for all labels, or one for each where an image has several."""

    models: list[Any]
    classes: int
    multi: bool
    strength: float

    @staticmethod
    def fit(
        images: Images,
        labels: np.ndarray,
        valid: Images,
        valid_labels: np.ndarray,
        classes: int,
    ) -> "PixelBaseline":
        """Fit to the training rows with the strength that suits the validation rows."""
        features, held = pixel_features(images), pixel_features(valid)
        multi = labels.ndim == 2
        best, least = STRENGTHS[-2], np.inf
        for strength in STRENGTHS if len(valid) else ():
            some = slice(TUNED_ON)
            tried = PixelBaseline(
                _fitted(features[some], labels[some], strength), classes, multi, strength
            )
            chances = np.clip(tried._chances(held), LEAST, 1 - LEAST)
            logits = np.log(chances) - (np.log1p(-chances) if multi else 0)
            if (loss := log_loss(logits, valid_labels)) < least:
                best, least = strength, loss
        return PixelBaseline(_fitted(features, labels, best), classes, multi, best)

    def probabilities(self, images: Images) -> Probabilities:
        """The probability of each label for each image."""
        return self._chances(pixel_features(images))

    def _chances(self, features: Features) -> Probabilities:
        if self.multi:
            each = [_spread(one, features, 2)[:, 1] for one in self.models]
            return np.stack(each, axis=1)
        return _spread(self.models[0], features, self.classes)


def _spread(model: Any, features: Features, classes: int) -> Float[np.ndarray, "N classes"]:
    """The probabilities of all classes, those included that the model never saw."""
    found = np.zeros((len(features), classes))
    found[:, model.classes_] = model.predict_proba(features)
    return found


def _fitted(features: Features, labels: Labels, strength: float) -> list[Any]:
    columns = [labels] if labels.ndim == 1 else [*labels.T]
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
