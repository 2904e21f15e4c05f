"""What each word of a transcript is based on: stretches of sound."""

from copy import copy
from typing import Any

from torch import nn

from glassformer.errors import GlassformerError
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.shared.recordings import Part
from glassformer.tasks.shared.sound_predictor import Recording
from glassformer.tasks.transcribe.pieces import cut_at_pauses
from glassformer.tasks.transcribe.predictor import STANDARD_INPUT, TranscribePredictor
from glassformer.tasks.transcribe.subject import HeardText
from glassformer.tasks.transcribe.task import TranscribeTask


class TranscribeExplainer(Explainer[TranscribeTask, Recording]):
    """Explains transcripts, or given ones as if they were written."""

    def __init__(self, task: TranscribeTask) -> None:
        super().__init__(task)
        self.predictor = TranscribePredictor(task)

    def configured(self, **options: Any) -> "TranscribeExplainer":
        if options.get("stream"):
            raise GlassformerError("a stream is not explained; record it, and leave out --stream")
        other = copy(self)
        other.predictor = self.predictor.configured(**options)
        return other

    def subject(
        self,
        model: nn.Module,
        given: Recording,
        *,
        target: str | None = None,
        unit: str | None = None,
    ) -> HeardText:
        """A recording and its transcript; of a long recording, its first piece."""
        if unit is not None:
            raise GlassformerError("the pieces of a sound are stretches of it; leave out the unit")
        if isinstance(given, Part) and given.path == STANDARD_INPUT:
            raise GlassformerError("standard input is not explained; record it, and name the file")
        rate, longest = self.task.settings.rate, self.predictor.longest
        sound, whole = next(cut_at_pauses(self.predictor.blocks(given), rate, longest))
        seconds = len(sound) / rate
        name = str(given) if isinstance(given, Part) else f"a recording of {seconds:.1f} seconds"
        heard = HeardText(self.task, self.predictor.searcher, model, sound, name, target)
        if not whole:
            heard.given = f"{name}, the first {seconds:.1f} seconds"
            heard.notes = (f"Only the first {seconds:.1f} seconds are explained.",)
        return heard
