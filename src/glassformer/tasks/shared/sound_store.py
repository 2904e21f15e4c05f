"""The recordings of a run on disk: features, or waveforms to compute them from on the fly.

Features take no time, and half the space of waveforms at each speed at which recordings are played.
Waveforms can be augmented in other ways, too. Which version of a recording an epoch hears depends
on the seed, the epoch and the row alone.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from glassformer.data.audio.augment import add_noise, at_speed, perturb_volume, spec_augment
from glassformer.data.audio.extractor import Extractor, Features
from glassformer.data.audio.features import frame_count
from glassformer.data.audio.reading import Sound
from glassformer.data.ragged import Ragged
from glassformer.tasks.shared.sound_settings import AugmentConfig, SoundConfig

SCALE = 2**15  # samples are stored as 16-bit integers


class SoundStore:
    """The features of every recording of a run.

    Args:
        data: The folder of the run's data.
        extract: From samples to features.
    """

    def __init__(self, data: Path, extract: Extractor, settings: SoundConfig) -> None:
        self.extract, self.settings = extract, settings
        self.rows, self.speeds = Ragged.open(data / settings.store), stored_speeds(settings)

    @staticmethod
    def write(
        data: Path, sounds: Iterable[Sound], extract: Extractor, settings: SoundConfig
    ) -> "SoundStore":
        """Store recordings one by one."""
        if settings.store == "features":
            speeds = stored_speeds(settings)
            rows = (extract(at_speed(sound, x)).ravel() for sound in sounds for x in speeds)
            Ragged.write(data / settings.store, rows, np.float16)
        else:
            Ragged.write(data / settings.store, map(as_integers, sounds), np.int16)
        return SoundStore(data, extract, settings)

    def frames(self, row: int, speed: float = 1.0) -> int:
        """How many frames a recording has, played at a speed."""
        if self.settings.store == "features":
            return int(self.rows.lengths[self._place(row, speed)]) // self.extract.bins
        return frame_count(int(int(self.rows.lengths[row]) / speed), self.settings.rate)

    def __getitem__(self, row: int) -> Features:
        if self.settings.store == "features":
            return self._stored(row, 1.0)
        return self.extract(as_floats(self.rows[row]))

    def _stored(self, row: int, speed: float) -> Features:
        """The features of a recording that was played at one of the speeds."""
        return self.rows[self._place(row, speed)].reshape(-1, self.extract.bins)

    def _place(self, row: int, speed: float) -> int:
        return row * len(self.speeds) + self.speeds.index(speed)

    def augmented(self, row: int, rng: np.random.Generator) -> Features:
        """The features of a recording to train on: changed, and with some of them hidden."""
        augment, masking = self.settings.augment, self.settings.masking
        speed = float(rng.choice(augment.speeds)) if augment.speeds else 1.0
        if self.settings.store == "features":
            features = self._stored(row, speed)
        else:
            features = self.extract(heard(at_speed(as_floats(self.rows[row]), speed), augment, rng))
        return spec_augment(
            features.astype(np.float32),
            rng,
            frequency_masks=masking.frequencies,
            frequency_width=masking.bins,
            time_masks=masking.times,
            time_share=masking.share,
        )


def heard(sound: Sound, augment: AugmentConfig, rng: np.random.Generator) -> Sound:
    """A recording as it is heard while training: louder or quieter, and with noise."""
    if augment.volume:
        sound = perturb_volume(sound, rng, augment.volume)
    return add_noise(sound, rng, augment.noise) if augment.noise else sound


def stored_speeds(settings: SoundConfig) -> list[float]:
    """The speeds at which features are stored, as recorded first."""
    return list(dict.fromkeys((1.0, *settings.augment.speeds)))


def as_integers(sound: Sound) -> Int[np.ndarray, " _"]:
    """Samples of 16 bits; a file of that precision loses nothing."""
    return np.clip(np.rint(sound * SCALE), -SCALE, SCALE - 1).astype(np.int16)


def as_floats(stored: Int[np.ndarray, " _"]) -> Float[np.ndarray, " _"]:
    """The samples that were stored."""
    return stored.astype(np.float32) / SCALE
