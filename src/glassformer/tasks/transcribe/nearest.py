"""The baseline as a predictor: the transcript of the most similar training recording."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from torch import nn

from glassformer.data.audio.reading import Sound
from glassformer.tasks.predictor import BaselinePredictor, Prediction
from glassformer.tasks.shared.nearest import StoredNearest
from glassformer.tasks.shared.sound_predictor import Recording, SoundPredictor
from glassformer.tasks.transcribe.task import TranscribeTask

AGREEING = 5  # recordings whose transcripts tell how sure an answer is


class NearestPredictor(
    BaselinePredictor[TranscribeTask, Recording], SoundPredictor[TranscribeTask]
):
    """The transcript of a similar recording; sure if other similar ones say the same.

    Args:
        blocks: Reads a recording.
    """

    def __init__(
        self,
        task: TranscribeTask,
        stored: StoredNearest,
        blocks: Callable[[Recording], Iterator[Sound]],
    ) -> None:
        super().__init__(task)
        self.stored, self.blocks = stored, blocks

    def predict(self, model: nn.Module, inputs: Iterable[Recording]) -> Iterator[Prediction]:
        for recording in inputs:
            features = self.task.features(np.concatenate(list(self.blocks(recording))))
            [nearest] = self.stored.recordings([features], len(self.stored.answers))
            texts = [self.stored.answers[row] for row in nearest.tolist()]
            yield self._prediction(texts)

    def _prediction(self, texts: list[str]) -> Prediction:
        """The first text, and those that follow it."""
        voting = texts[:AGREEING]
        shares = {text: voting.count(text) / len(voting) for text in dict.fromkeys(texts)}
        (best, share), *rest = list(shares.items())[: self.alternatives + 1]
        lines = [f"  or {text}\t{other:.3f}" for text, other in rest]
        others = [{"text": text, "confidence": other} for text, other in rest]
        return Prediction(best, share, {"alternatives": others} if others else {}, below=lines)
