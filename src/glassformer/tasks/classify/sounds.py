"""Recordings as a classifier reads them: features, of a long recording those of its beginning."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.config import DataConfig, require
from glassformer.config.run import Config
from glassformer.core.layout import Layout
from glassformer.data.audio.extractor import Extractor, Features
from glassformer.data.audio.reading import Sound, read_blocks
from glassformer.data.batches import row_rng
from glassformer.data.samples import Sample, Samples
from glassformer.models.transformer import ClassScores, Noise
from glassformer.tasks.shared.batches import LaidOutBatch
from glassformer.tasks.shared.label_inputs import Inputs, Read, Rows
from glassformer.tasks.shared.own_models import given
from glassformer.tasks.shared.recordings import Part
from glassformer.tasks.shared.sound import (
    extractor_of,
    padded_features,
    reaching_sounds,
    settle_sound,
)
from glassformer.tasks.shared.sound_store import SoundStore


@dataclass(frozen=True, slots=True)
class SoundBatch(LaidOutBatch):
    """Some recordings, padded, and their labels.

    Attributes:
        row_ids: The row of the split that each row is.
    """

    features: Float[Tensor, "B frames M"]
    layout: Layout
    labels: Tensor
    row_ids: Int[Tensor, " B"]


class SoundInputs(Inputs):
    """Recordings. What counts towards the size of a batch is their frames."""

    role, noun = "path", "recording"
    epochs = 30.0
    batch = SoundBatch

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.folder, self.settings = config, folder, config.task
        if data is not None:
            self.sounds = SoundStore(data, self.extract, self.settings)

    @cached_property
    def extract(self) -> Extractor:
        """From samples to features."""
        return extractor_of(self.settings, self.config.model.frontend.bins, self.folder)

    @staticmethod
    def prepare(config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        refuse_settings_of_texts(config)
        model = config.model
        if model.frontend.kind == "tokens":  # by default
            model = replace(model, frontend=replace(model.frontend, kind="subsampling"))
        task = settle_sound(config.task, model.frontend.bins, samples, folder, origin)
        return replace(config, model=reaching_sounds(model, task), task=task, pretrain="no")

    def index(self, samples: Samples, data: Path) -> None:
        sounds = (self.sound(Part.of(sample)) for sample in samples)
        SoundStore.write(data, sounds, self.extract, self.settings)

    def sound(self, part: Part) -> Sound:
        """The samples of a recording that are read; what follows them is not even opened."""
        rate, left = self.settings.rate, self._most
        blocks = []
        for block in read_blocks(part.path, rate, start=part.start, end=part.end):
            blocks.append(block[:left])
            left -= len(block)
            if left <= 0:
                break
        return np.concatenate(blocks)

    def features(self, recording: Part | Sound) -> Features:
        """The features of a recording, or of samples at the rate of the settings."""
        sound = self.sound(recording) if isinstance(recording, Part) else recording
        return self.extract(sound[: self._most])

    @property
    def _most(self) -> int:
        return int(self.settings.max_seconds * self.settings.rate)

    def lengths(self, numbers: Rows, *, training: bool) -> Rows:
        speed = self.settings.augment.slowest if training else 1.0
        frames = [self.sounds.frames(number, speed) for number in numbers.tolist()]
        return np.array(frames, dtype=np.int64)

    def read(self, numbers: Rows, epoch: int | None) -> Read:
        rows = numbers.tolist()
        if epoch is None:
            sounds = [self.sounds[row] for row in rows]
        else:
            rngs = [row_rng(self.config.seed, epoch, row) for row in rows]
            sounds = list(map(self.sounds.augmented, rows, rngs))
        return *padded_features(sounds), np.arange(len(rows))

    def forward(self, model: nn.Module, batch: SoundBatch, noise: Noise | None) -> ClassScores:
        """Scores of the labels."""
        return model(batch.features, layout=batch.layout, **given(noise=noise))

    def shown(self, sample: Sample) -> str:
        return Path(sample["path"]).name


def refuse_settings_of_texts(config: Config, noun: str = "recordings") -> None:
    """Refuse settings that have an effect on texts only."""
    usual, given = DataConfig(), config.data
    unused = {
        "task.long": config.task.long != "head",
        "task.vectors": config.task.vectors != "random",
        "data.tokenizer": given.tokenizer != usual.tokenizer,
        "data.token_dropout": given.token_dropout != usual.token_dropout,
        "data.form": given.form != usual.form and not config.own_model,
        "pretrain": config.pretrain == "yes",
        "model.ngrams": config.model.ngrams == "yes",
    }
    for name, is_set in unused.items():
        require(not is_set, f"{name} has no effect on {noun}; leave it out")
