"""Sounds as a model reads them: features of recordings, padded into batches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.config import ModelConfig, require
from glassformer.core.layout import Layout
from glassformer.data.audio.extractor import Extractor, Features
from glassformer.data.audio.normalise import Moments
from glassformer.data.audio.reading import Sound
from glassformer.data.samples import Sample, Samples
from glassformer.tasks.shared.recordings import Part, read_part
from glassformer.tasks.shared.sound_settings import SoundConfig
from glassformer.tasks.shared.sound_store import heard

SOUND_FRONTENDS = ("subsampling", "conv1d", "resnet")
MOMENTS = "moments.json"
MEASURED = 2000  # training recordings whose mean and variance stand for all
FRAMES_A_SECOND = 100

Settings = TypeVar("Settings", bound=SoundConfig)


def vectors_of(frames: int, factor: int) -> int:
    """How many vectors a frontend makes of so many frames."""
    return -(-frames // factor)


def padded_features(sounds: Sequence[Features]) -> tuple[Float[Tensor, "B frames M"], Layout]:
    """Features of several recordings in one tensor."""
    layout = Layout.padded([len(sound) for sound in sounds])
    features = torch.zeros(len(sounds), layout.longest, sounds[0].shape[1])
    for row, sound in enumerate(sounds):
        features[row, : len(sound)] = torch.from_numpy(sound.astype(np.float32))
    return features, layout


def is_long(sample: Sample, settings: SoundConfig) -> bool:
    """Whether a recording is too long to be read at once."""
    return bool(sample["sound"]["seconds"] > settings.max_seconds)


def read_short(samples: Iterable[Sample], settings: SoundConfig) -> Iterator[Sound]:
    """The samples of each recording; none of one that is too long to be used."""
    for sample in samples:
        if is_long(sample, settings):
            yield np.empty(0, dtype=np.float32)
        else:
            yield read_part(Part.of(sample), settings.rate)


def extractor_of(settings: SoundConfig, bins: int, folder: Path) -> Extractor:
    """From samples to features, as a run in this folder computes them."""
    moments = Moments.load(folder / MOMENTS) if settings.normalise == "all" else None
    return Extractor(settings.features, settings.rate, bins, moments, window=settings.window)


def settle_sound(
    task: Settings, bins: int, samples: Samples, folder: Path, origin: Path | None
) -> Settings:
    """Settings that leave nothing open; moments, if they are needed, are put into the folder."""
    if task.store == "auto":
        task = replace(task, store="waveforms" if task.augment.has_no_end else "features")
    extract = Extractor(task.features, task.rate, bins, window=task.window)
    if task.normalise == "all":
        moments_for(samples, extract, task, origin).save(folder / MOMENTS)
    return task


def reaching_sounds(model: ModelConfig, task: SoundConfig) -> ModelConfig:
    """The model with positions for the longest recordings, refused if it does not read sound."""
    require(
        model.frontend.kind in SOUND_FRONTENDS,
        f"model.frontend.kind = {model.frontend.kind} does not read sound; choose from "
        f"{', '.join(SOUND_FRONTENDS)}",
    )
    longest = vectors_of(int(task.max_seconds * FRAMES_A_SECOND), model.frontend.factor) + 1
    stacks = {
        name: None if stack is None else replace(stack, max_length=max(stack.max_length, longest))
        for name, stack in (("encoder", model.encoder), ("decoder", model.decoder))
    }
    return replace(model, encoder=stacks["encoder"], decoder=stacks["decoder"])


def moments_for(
    samples: Samples, extract: Extractor, task: SoundConfig, origin: Path | None
) -> Moments:
    """The moments of another run, or those of training recordings, with the noise that is added."""
    if origin is not None and (origin / MOMENTS).exists():
        return Moments.load(origin / MOMENTS)
    rows = samples.rows("train")
    some = samples.take(rows[:: -(-len(rows) // MEASURED) or 1].tolist())
    parts = (Part.of(sample) for sample in some if not is_long(sample, task))
    sounds, rng = (read_part(part, task.rate) for part in parts), np.random.default_rng(0)
    return Moments.of(extract.unnormalised(heard(sound, task.augment, rng)) for sound in sounds)
