"""Augmentation: the same words, said a little differently each time.

    spec_augment     hides bands of frequency and stretches of time     Park et al., 2019
    perturb_speed    faster or slower, and so higher or lower           Ko et al., 2015
    perturb_volume   louder or quieter
    add_noise        behind the sound, so many decibels below it

Each returns a new array or tensor and draws from the generator that it is given, on the CPU: with
`row_rng(seed, epoch, row)` it is a function of these, whatever else happens.
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32
from torch import Tensor

from glassformer.data.audio.reading import Sound, import_soxr

SILENT = 1e-12

Features = Float[Tensor, "F M"]
AnySound = Float32[np.ndarray, " _"]  # no name: of another length than the sound that is augmented


def spec_augment(
    features: Features,
    rng: np.random.Generator,
    *,
    frequency_masks: int = 2,
    frequency_width: int = 27,
    time_masks: int = 2,
    time_width: int = 100,
    time_share: float = 0.2,
    warp: int = 0,
) -> Features:
    """Features with bands and stretches set to the mean of their bin.

    Args:
        frequency_width: Bins that a mask covers, at most.
        time_width: Frames that a mask covers, at most.
        time_share: The share of all frames that a mask covers, at most.
        warp: Frames by which a point in time moves, at most; what lies before and after it is
            stretched or squeezed.
    """
    frames, bins = features.shape
    mean = features.mean(0)
    features = _warped(features, rng, warp).clone()
    for _ in range(frequency_masks):
        band = _span(rng, bins, frequency_width)
        features[:, band] = mean[band]
    for _ in range(time_masks):
        features[_span(rng, frames, min(time_width, int(time_share * frames)))] = mean
    return features


def perturb_speed(
    sound: Sound, rng: np.random.Generator, factors: Sequence[float] = (0.9, 1.0, 1.1)
) -> AnySound:
    """A recording played at one of several speeds; at 1.1, it takes 1/1.1 of the time."""
    factor = float(rng.choice(factors))
    return sound if factor == 1.0 else import_soxr().resample(sound, factor, 1.0)


def perturb_volume(sound: Sound, rng: np.random.Generator, decibels: float = 6.0) -> Sound:
    """A recording up to so many decibels louder or quieter."""
    return sound * np.float32(_amplitude(rng.uniform(-decibels, decibels)))


def add_noise(
    sound: Sound,
    rng: np.random.Generator,
    ratios: tuple[float, float] = (10.0, 30.0),
    noise: AnySound | None = None,
) -> Sound:
    """A recording with noise behind it.

    Args:
        ratios: The lowest and the highest signal-to-noise ratio, in decibels.
        noise: A recording of noise, used from a random point on, repeated where it is too short;
            white noise by default.
    """
    if noise is None:
        behind = rng.standard_normal(len(sound), dtype=np.float32)
    else:
        behind = noise.take(rng.integers(len(noise)) + np.arange(len(sound)), mode="wrap")
    level = _loudness(sound) / max(_loudness(behind), SILENT)
    return sound + behind * np.float32(level * _amplitude(-rng.uniform(*ratios)))


def _span(rng: np.random.Generator, size: int, widest: int) -> slice:
    width = int(rng.integers(min(widest, size) + 1))
    first = int(rng.integers(size - width + 1))
    return slice(first, first + width)


def _warped(features: Features, rng: np.random.Generator, farthest: int) -> Features:
    frames = len(features)
    if not 0 < farthest < frames / 2:
        return features
    point = int(rng.integers(farthest, frames - farthest))
    moved = max(1, point + int(rng.integers(-farthest, farthest + 1)))
    parts = [(features[:point], moved), (features[point:], frames - moved)]
    return torch.cat([F.interpolate(x.T[None], size, mode="linear")[0].T for x, size in parts])


def _loudness(sound: Sound) -> float:
    return float(np.sqrt(np.square(sound, dtype=np.float64).mean()))


def _amplitude(decibels: float) -> float:
    return float(10 ** (decibels / 20))
