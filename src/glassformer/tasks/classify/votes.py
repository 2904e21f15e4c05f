"""The baseline for recordings: the labels of the most similar training recordings vote."""

from collections.abc import Iterable, Iterator

import numpy as np
from jaxtyping import Float, Shaped
from torch import nn

from glassformer.tasks.classify.sounds import SoundInputs
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.tasks.predictor import BaselinePredictor, Prediction
from glassformer.tasks.shared.nearest import StoredNearest
from glassformer.tasks.shared.sound_predictor import Recording, SoundPredictor

VOTES = 5  # recordings that answer for a new one


def votes(labels: Shaped[np.ndarray, "N votes ..."], classes: int) -> Float[np.ndarray, "N C"]:
    """The share of each class among the labels of some rows, and a little of every class."""
    each = labels if labels.ndim == 3 else labels[..., None] == np.arange(classes)
    return (each.sum(axis=1) + 1 / classes) / (labels.shape[1] + 1)


class VotePredictor(BaselinePredictor[ClassifyTask, Recording], SoundPredictor[ClassifyTask]):
    """The label or labels of a recording, by those of similar ones."""

    def __init__(self, task: ClassifyTask, inputs: SoundInputs, stored: StoredNearest) -> None:
        super().__init__(task)
        self.inputs, self.stored = inputs, stored
        self.label_ids = np.array(stored.answers)

    def predict(self, model: nn.Module, inputs: Iterable[Recording]) -> Iterator[Prediction]:
        for recording in inputs:
            nearest = self.stored.recordings([self.inputs.features(recording)], VOTES)
            chances = votes(self.label_ids[nearest], len(self.task.labels.names))
            yield from self.task.labels.predictions(chances, self.alternatives, baseline=True)
