"""A recording as a small file that every browser plays: MP3, or WAV without a library."""

import io
import wave
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from glassformer.data.audio.decoders import import_soundfile
from glassformer.data.audio.reading import Sound, read_blocks
from glassformer.errors import GlassformerError

RATE = 16000  # samples a second
SLOWEST = 8000  # samples a second of a file that Chromium plays
LONGEST = 20.0  # seconds; about 80 kB


def read_clip(path: Path | str, *, start: float = 0.0, end: float | None = None) -> bytes | None:
    """The beginning of a recording, or of a part of it; None if it cannot be read or written."""
    try:
        return as_mp3(beginning(read_blocks(path, RATE, start=start, end=end)))
    except GlassformerError:  # such as a file that is gone by now
        return None


def beginning(blocks: Iterable[Sound]) -> Sound:
    """The first seconds of a sound; no more of it is read."""
    found, samples = [], 0
    for block in blocks:
        found.append(block)
        samples += len(block)
        if samples >= LONGEST * RATE:
            break
    return np.concatenate(found)[: int(LONGEST * RATE)]


def as_mp3(sound: Sound) -> bytes | None:
    """A sound at `RATE` as an MP3 file; None where the library does not write them."""
    soundfile = import_soundfile()
    if "MP3" not in soundfile.available_formats():
        return None
    file = io.BytesIO()
    soundfile.write(file, np.clip(sound, -1, 1), RATE, format="MP3")
    return file.getvalue()


def as_wav(sound: Sound, rate: int) -> bytes:
    """A WAV file of 16-bit samples, as loud as it can be without clipping.

    Of a sound below 8 kHz, which Chromium does not play, it is a copy at `RATE`.

    >>> with wave.open(io.BytesIO(as_wav(np.ones(500, dtype=np.float32), 2000))) as file:
    ...     file.getframerate(), file.getnframes()
    (16000, 4000)
    """
    if rate < SLOWEST and len(sound):
        sound, rate = interpolated(sound, round(len(sound) * RATE / rate)), RATE
    loudest = max(float(np.abs(sound).max(initial=0.0)), 1e-9)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((sound / loudest * 32_000).round().astype("<i2").tobytes())
    return file.getvalue()


def interpolated(sound: Sound, samples: int) -> Float32[np.ndarray, " more"]:
    """A sound in more samples, with no frequency that it did not have."""
    spectrum = np.fft.rfft(sound)
    return (np.fft.irfft(spectrum, samples) * (samples / len(sound))).astype(np.float32)
