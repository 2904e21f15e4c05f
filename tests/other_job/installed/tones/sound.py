"""Recordings: WAV files as numbers between -1 and 1."""

import wave
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int16

from glassformer.errors import GlassformerError


def read_samples(path: Path) -> tuple[Int16[np.ndarray, " samples"], int]:
    """The samples of a recording, and how many there are to a second."""
    try:
        with wave.open(str(path), "rb") as file:
            shape, rate = (file.getnchannels(), file.getsampwidth()), file.getframerate()
            values = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        raise GlassformerError(f"{path}: not a recording ({error}); give a WAV file") from None
    if shape != (1, 2):
        raise GlassformerError(f"{path}: not one channel of 16 bits; convert it")
    return np.frombuffer(values, dtype="<i2"), rate


def read_sound(path: Path, rate: int) -> Float[np.ndarray, " samples"]:
    """A recording as numbers, refused where its rate is another one."""
    samples, found = read_samples(path)
    if found != rate:
        raise GlassformerError(f"{path}: {found} samples a second, not {rate}; convert it")
    return as_sound(samples)


def as_sound(samples: Int16[np.ndarray, " samples"]) -> Float[np.ndarray, " samples"]:
    """Samples of 16 bits as numbers between -1 and 1."""
    return samples.astype(np.float32) / 2**15
