"""Predictors that take recordings: paths, parts of recordings, or samples from Python."""

from pathlib import Path
from typing import Any

import numpy as np

from glassformer.data.audio.features import frame_count
from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.tasks.predictor import Predictor, SomeTask
from glassformer.tasks.shared.recordings import Part

Recording = Part | np.ndarray


class SoundPredictor(Predictor[SomeTask, Recording]):
    """Predicts from recordings."""

    kinds = (str, Path, np.ndarray, Part)
    noun = "recording"

    @property
    def sampling_rate(self) -> int:
        """Samples a second of a recording from Python."""
        rate: int = self.task.settings.rate  # type: ignore[attr-defined]
        return rate

    def accept(self, value: Any) -> Recording:
        value = super().accept(value)
        if isinstance(value, str | Path):
            return Part(path=Path(value))
        return value if isinstance(value, Part) else self._samples(value)

    def _samples(self, value: np.ndarray) -> np.ndarray:
        rate = self.sampling_rate
        if value.ndim != 1 or value.dtype.kind != "f":
            raise GlassformerError(
                f"a recording is one channel of numbers between -1 and 1, {rate:,} a second; got "
                f"{value.dtype} of shape {value.shape}"
            )
        if not frame_count(len(value), rate) or not np.isfinite(value).all():
            raise GlassformerError(
                f"a recording has finite numbers for at least 25 ms; got {len(value)} at {rate:,} "
                f"a second; record it again"
            )
        return value.astype(np.float32)

    def from_sample(self, sample: Sample) -> Recording:
        return Part.of(sample)

    def example(self) -> str:
        return "recording.wav"
