"""What speaks for and against each label of a recording: stretches of sound."""

from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.data.audio.reading import Sound as Samples
from glassformer.errors import GlassformerError
from glassformer.explaining.parts import AttentionMap, Sound
from glassformer.explaining.watching import Maps
from glassformer.models.transformer import Classifier, Noise
from glassformer.tasks.classify.predictor import RECORDINGS
from glassformer.tasks.classify.sounds import SoundBatch, SoundInputs
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_subject import LabelSubject
from glassformer.tasks.shared.recordings import Part
from glassformer.tasks.shared.sound import FRAMES_A_SECOND, vectors_of
from glassformer.tasks.shared.sound_predictor import Recording
from glassformer.tasks.shared.targets import labelled_map

SHORTEST, MOST = 0.1, 40  # seconds of a piece, and pieces of a recording


class SoundLabelExplainer(Explainer[ClassifyTask, Recording]):
    """Explains the labels of recordings."""

    def subject(
        self,
        model: nn.Module,
        given: Recording,
        *,
        target: str | None = None,
        unit: str | None = None,
    ) -> "LabelledSound":
        if unit is not None:
            raise GlassformerError("the pieces of a sound are stretches of it; leave out the unit")
        assert isinstance(self.task.inputs, SoundInputs)
        sound = self.task.inputs.sound(given) if isinstance(given, Part) else given
        name = str(given) if isinstance(given, Part) else "a recording"
        return LabelledSound(self.task, self.task.inputs, model, sound, name, target)


class LabelledSound(LabelSubject):
    """A recording and the labels that it may have; of a long one, its beginning.

    A stretch that is left out has the mean of the recording's features.
    """

    def __init__(
        self,
        task: ClassifyTask,
        inputs: SoundInputs,
        model: nn.Module,
        sound: Samples,
        name: str,
        target: str | None,
    ) -> None:
        self.task, self.model, self.given, self.samples = task, model, name, sound
        self.device = next(model.parameters()).device
        features = inputs.features(sound).astype(np.float32)
        self.features = torch.from_numpy(features).to(self.device)
        self._cut()
        every = torch.ones(1, len(self.pieces), dtype=torch.bool)
        self._settle(self._answers(every), target)
        if isinstance(model, Classifier):  # rather than one of the user's own
            self.readers = self._readers(model)
            mean, frames = self.features.mean(0), len(self.features)
            with torch.no_grad():
                layout = Layout.full(1, frames, self.device)
                self.blank, _ = model.frontend(mean.expand(1, frames, -1), layout)

    def _cut(self) -> None:
        """Cut the recording into stretches of equal length."""
        factor, frames = self.task.config.model.frontend.factor, len(self.features)
        vectors, self.vector = vectors_of(frames, factor), factor / FRAMES_A_SECOND
        size = max(round(SHORTEST / self.vector), -(-vectors // MOST), 1)
        self.frame_piece = torch.arange(frames) // (factor * size)
        self.piece_of = torch.arange(vectors, device=self.device)[None] // size
        ends = [*(n * self.vector for n in range(0, vectors, size)), frames / FRAMES_A_SECOND]
        self.stretches = tuple(pairwise(ends))
        self.pieces = tuple(f"{start:.2f}-{end:.2f}" for start, end in self.stretches)

    @property
    def sound(self) -> Sound:
        """What was heard, as pictures show it."""
        settings = self.task.settings
        return Sound(
            samples=torch.from_numpy(self.samples),
            rate=settings.rate,
            spectrogram=self.features.cpu(),
            frame=1 / FRAMES_A_SECOND,
            vector=self.vector,
            stretches=self.stretches,
        )

    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        batch = self._batch(self.features.expand(copies, -1, -1))
        logits = self.task.forward(model, batch, noise=noise)
        return self._log_odds(logits / self.task.labels.temperature)

    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        return self._log_odds(torch.from_numpy(self._answers(kept).logits))

    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        times = [f"{number * self.vector:.2f}" for number in range(self.piece_of.shape[1])]
        return tuple(labelled_map(name, maps[name][0], times, times) for name in maps)

    def _answers(self, kept: Bool[Tensor, "variants pieces"]) -> ClassAnswers:
        """The model's answers if only these stretches are heard."""
        heard = kept[:, self.frame_piece, None].to(self.device)  # (variants, frames, 1)
        mean, numbers = self.features.mean(0), torch.arange(len(kept)).split(RECORDINGS)
        batches = (self._batch(torch.where(heard[n], self.features, mean), n) for n in numbers)
        with torch.no_grad():
            return self.task.answers(self.model, batches)

    def _batch(
        self, features: Float[Tensor, "rows frames M"], row_ids: Tensor | None = None
    ) -> SoundBatch:
        rows, frames = features.shape[:2]
        labels, multi = self.task.labels, self.task.labels.multi
        none = torch.zeros((rows, len(labels.names)) if multi else (rows,), dtype=torch.long)
        numbers = torch.arange(rows) if row_ids is None else row_ids
        return SoundBatch(features, Layout.full(rows, frames, self.device), none, numbers)
