"""Augmentation: the same words, said a little differently each time.

    spec_augment     hides bands of frequency and stretches of time     Park et al., 2019
    at_speed         faster or slower, and so higher or lower           Ko et al., 2015
    perturb_volume   louder or quieter
    add_noise        white noise, so many decibels below the sound

Each returns a new array. What is random is drawn from the generator that is given: with
`row_rng(seed, epoch, row)` it is a function of these, whatever else happens.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32

from glassformer.data.audio.reading import Sound, import_soxr

Features = Float[np.ndarray, "F M"]
AnySound = Float32[np.ndarray, " _"]  # no name: of another length than the sound that is augmented


def spec_augment(
    features: Features,
    rng: np.random.Generator,
    *,
    frequency_masks: int,
    frequency_width: int,
    time_masks: int,
    time_share: float,
) -> Features:
    """Features with bands and stretches set to the mean of their bin.

    Args:
        frequency_width: Bins that a mask covers, at most.
        time_share: The share of all frames that a mask covers, at most.
    """
    frames, bins = features.shape
    mean = features.mean(0)
    features = features.copy()
    for _ in range(frequency_masks):
        band = _span(rng, bins, frequency_width)
        features[:, band] = mean[band]
    for _ in range(time_masks):
        features[_span(rng, frames, int(time_share * frames))] = mean
    return features


def at_speed(sound: Sound, speed: float) -> AnySound:
    """A recording played at another speed; at 1.1, it takes 1/1.1 of the time."""
    return sound if speed == 1.0 else import_soxr().resample(sound, speed, 1.0)


def perturb_volume(sound: Sound, rng: np.random.Generator, decibels: float) -> Sound:
    """A recording up to so many decibels louder or quieter."""
    return sound * np.float32(_amplitude(rng.uniform(-decibels, decibels)))


def add_noise(sound: Sound, rng: np.random.Generator, ratios: Sequence[float]) -> Sound:
    """A recording with white noise behind it.

    Args:
        ratios: The lowest and the highest signal-to-noise ratio, in decibels.
    """
    loudness = float(np.sqrt(np.square(sound, dtype=np.float64).mean()))
    level = np.float32(loudness * _amplitude(-rng.uniform(min(ratios), max(ratios))))
    return sound + level * rng.standard_normal(len(sound), dtype=np.float32)


def _span(rng: np.random.Generator, size: int, widest: int) -> slice:
    width = int(rng.integers(min(widest, size) + 1))
    first = int(rng.integers(size - width + 1))
    return slice(first, first + width)


def _amplitude(decibels: float) -> float:
    return float(10 ** (decibels / 20))
