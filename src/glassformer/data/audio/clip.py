"""A recording as a small MP3 file, for a page to play."""

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from glassformer.data.audio.decoders import import_soundfile
from glassformer.data.audio.reading import Sound, read_blocks
from glassformer.errors import GlassformerError

RATE = 16000  # samples a second
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
