"""Decoders: a file of sound as blocks of samples, at its own rate, with all of its channels.

    soundfile   WAV, FLAC, OGG, MP3, AIFF, SPHERE, ...
    PyAV        what soundfile cannot open: m4a, webm, the sound of a video, ...

Both stream, so that memory does not grow with the length of a file.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from glassformer.data.sources.files import kind_of, reason
from glassformer.errors import GlassformerError, install

Block = Float32[np.ndarray, "samples channels"]

BLOCK = 1 << 16  # samples of each channel in one block
STREAMED = 0x7FFF0000  # bytes; a header written before the end of the sound was known says more
UNKNOWN = 1 << 48  # samples; libsndfile says more where a header says nothing

# Formats that hold sound themselves, unlike playlists, which would open other files.
CONTAINERS = "mov,matroska,avi,asf,flv,mpegts,mpeg,ogg,aac,ac3,amr,ape,caf,mp3,tta,wav,wv"
MEASURED = ("mov", "matroska")


@dataclass(frozen=True, slots=True)
class Decoder:
    """An open file of sound.

    Attributes:
        frames: Samples of each channel, None if the header does not say.
        truncated: Whether the header promises more than the file holds.
        blocks: The samples from a given one on; can be called once.
    """

    rate: int
    channels: int
    frames: int | None
    truncated: bool
    blocks: Callable[[int], Iterator[Block]]


@contextmanager
def open_sound(path: Path) -> Iterator[Decoder]:
    """A decoder for a file; what none can read is refused."""
    if kind_of(path) == "folder":
        raise GlassformerError(f"{path}: a folder, not a recording; name a file in it")
    if not path.stat().st_size:
        raise GlassformerError(f"{path}: the file is empty; record or fetch it again")
    soundfile = import_soundfile()
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.SoundFileError, TypeError) as error:
        why = getattr(error, "error_string", "no header")  # TypeError: raw samples without one
        opened: AbstractContextManager[Decoder] = _open_by_pyav(path, why)
    else:
        opened = _open_by_soundfile(path, file, soundfile.SoundFileError)
    with opened as decoder:
        yield decoder


def import_soundfile() -> Any:
    try:
        import soundfile  # type: ignore[import-untyped]
    except ImportError:
        raise GlassformerError(
            f"recordings need soundfile, which is not installed; {install('audio')}"
        ) from None
    return soundfile


@contextmanager
def _open_by_soundfile(path: Path, file: Any, broken: type[Exception]) -> Iterator[Decoder]:
    def blocks(first: int) -> Iterator[Block]:
        try:
            file.seek(min(first, file.frames))
            while len(block := file.read(BLOCK, dtype="float32", always_2d=True)):
                yield block
        except broken as error:
            raise _damaged(path, reason(error)) from None

    with file:
        frames = file.frames if file.frames < UNKNOWN else None
        cut = _is_cut(file.extra_info)
        yield Decoder(file.samplerate, file.channels, frames, cut, blocks)


def _is_cut(log: str) -> bool:
    """Whether libsndfile's log says that the end of a WAV or OGG file is missing."""
    size = re.search(r"^data : (\d+) \(should be (\d+)\)", log, re.MULTILINE)
    if size is not None:
        return int(size[2]) < int(size[1]) < STREAMED
    return "lacks an end-of-stream bit" in log


@contextmanager
def _open_by_pyav(path: Path, why: str) -> Iterator[Decoder]:
    try:
        import av
    except ImportError:
        raise GlassformerError(
            f"{path}: not a WAV, FLAC, OGG or MP3 file; convert it, or, to read m4a and webm, "
            f"{install('media')}"
        ) from None
    options = {"format_whitelist": CONTAINERS, "protocol_whitelist": "none"}
    with path.open("rb") as file:
        try:
            container = av.open(file, "r", options=options, metadata_errors="ignore")
        except av.FFmpegError:
            raise _damaged(path, why) from None
        with container:
            streams = [one for one in container.streams.audio if one.codec_context is not None]
            if not streams:
                raise GlassformerError(f"{path}: has no sound; give a recording, or remove it")
            stream = streams[0]

            def blocks(first: int) -> Iterator[Block]:
                same = av.AudioResampler(format="fltp")  # same rate and channels
                try:
                    for frame in container.decode(stream):
                        for part in same.resample(frame):
                            if len(block := part.to_ndarray().T[first:]):
                                yield block
                            first = max(0, first - part.samples)
                except av.FFmpegError as error:
                    raise _damaged(path, reason(error)) from None

            yield Decoder(stream.rate, stream.channels, _duration(container, stream), False, blocks)


def _duration(container: Any, stream: Any) -> int | None:
    """Samples by the header, in those formats that write it there; FFmpeg guesses for others."""
    if not container.format.name.startswith(MEASURED):
        return None
    if stream.duration is not None:
        return round(stream.duration * stream.time_base * stream.rate)
    return container.duration and container.duration * stream.rate // 10**6


def _damaged(path: Path, why: str) -> GlassformerError:
    return GlassformerError(
        f"{path}: not sound, or damaged ({why.strip().rstrip('.')}); fetch it again, convert it to "
        f"WAV or FLAC, or remove it"
    )
