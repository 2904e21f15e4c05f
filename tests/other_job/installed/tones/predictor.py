"""Words for new recordings: the path of one, or its samples from Python."""

from collections.abc import Iterable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.tasks.predictor import Prediction, Predictor
from tones.task import Heard, ListenTask

Recording = Path | np.ndarray


class ListenPredictor(Predictor[ListenTask, Recording]):
    """The word of a recording; with `times`, when each of its letters begins."""

    kinds = (str, Path, np.ndarray)
    noun = "recording"
    times = False

    def configured(self, **options: Any) -> "ListenPredictor":
        other = copy(self)
        other.times = options["times"]
        return other

    def accept(self, value: Any) -> Recording:
        value = super().accept(value)
        if not isinstance(value, np.ndarray):
            return Path(value)
        if value.ndim != 1 or value.dtype.kind != "f":
            raise GlassformerError(
                f"a recording is a row of numbers between -1 and 1, got {value.dtype} of shape "
                f"{value.shape}; give one channel"
            )
        return value.astype(np.float32)

    def from_sample(self, sample: Sample) -> Recording:
        return Path(sample["path"])

    def example(self) -> str:
        return "recording.wav"

    def predict(self, model: nn.Module, inputs: Iterable[Recording]) -> Iterator[Prediction]:
        device = next(model.parameters()).device
        for given in inputs:
            sound = given if isinstance(given, np.ndarray) else self.task.read(given)
            batch = self.task.recordings([sound], [""], np.arange(1)).to(device)
            [heard] = self.task.heard(model, batch)
            yield self._prediction(heard)

    def _prediction(self, heard: Heard) -> Prediction:
        word, settings = self.task.spelt(heard.letters), self.task.settings
        if not self.times:
            return Prediction(word, heard.confidence, {})
        times = [round(frame * settings.frame / settings.rate, 3) for frame in heard.frames]
        shown = [f"{time:.2f}\t{letter}" for time, letter in zip(times, word, strict=True)]
        return Prediction(word, heard.confidence, {"times": times}, below=shown)
