"""Reading recordings: one channel of 32-bit floats at the rate asked for, whatever the file holds.

Channels are averaged, and another rate is resampled by soxr. `read_blocks` streams; `read_audio`
gives a recording as a whole; both can read a part of it, between two times in seconds. A file that
is broken in any way is one GlassformerError that names it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from glassformer.data.audio.decoders import Decoder, open_sound
from glassformer.errors import GlassformerError, install

Sound = Float32[np.ndarray, " samples"]

RATES = (1000, 768_000)  # samples a second; a header that says less or more is damaged
MOST_CHANNELS = 64
SHORTEST = 0.025  # seconds: one window of features
LOUDEST = 1e12  # times the full scale; the square of much more is infinite
MISSING = 0.1  # seconds; headers of compressed files may be off by less


@dataclass(frozen=True, kw_only=True, slots=True)
class SoundInfo:
    """What the header of a recording says.

    Attributes:
        frames: Samples of each channel.
    """

    seconds: float
    rate: int
    channels: int
    frames: int


def sound_info(path: Path | str) -> SoundInfo:
    """The facts of a recording, from its header; it is decoded only if that lacks the length."""
    path = Path(path)
    with open_sound(path) as decoder:
        _check_header(path, decoder)
        frames = decoder.frames
        if frames is None:
            frames = sum(len(block) for block in decoder.blocks(0))
        _check_length(str(path), frames, decoder.rate)
        return SoundInfo(
            seconds=frames / decoder.rate,
            rate=decoder.rate,
            channels=decoder.channels,
            frames=frames,
        )


def read_audio(
    path: Path | str, rate: int, *, start: float = 0.0, end: float | None = None
) -> Sound:
    """A recording, or the part between two times in seconds, at `rate` samples a second."""
    return np.concatenate(list(read_blocks(path, rate, start=start, end=end)))


def read_blocks(
    path: Path | str, rate: int, *, start: float = 0.0, end: float | None = None
) -> Iterator[Sound]:
    """What `read_audio` gives, in blocks of a few seconds."""
    path = Path(path)
    with open_sound(path) as decoder:
        _check_header(path, decoder)
        yield from resampled(_mono(path, decoder, start, end), decoder.rate, rate)


def import_soxr() -> Any:
    try:
        import soxr  # type: ignore[import-untyped]
    except ImportError:
        raise GlassformerError(
            "changing the rate of a recording needs soxr, which is not installed; "
            f"{install('audio')}"
        ) from None
    return soxr


def _mono(path: Path, decoder: Decoder, start: float, end: float | None) -> Iterator[Sound]:
    """The average of the channels, checked: finite, and as long as it should be."""
    rate = decoder.rate
    first = at = round(start * rate)
    last = decoder.frames if end is None else round(end * rate)
    to = "" if end is None else f" to {end:g}"
    where = f"{path} from {start:g}{to} s" if start or to else str(path)
    for block in decoder.blocks(first):
        mono = block.mean(axis=1) if decoder.channels > 1 else block[:, 0]
        if end is not None:
            mono = mono[: max(0, round(end * rate) - at)]
        sound = np.abs(mono) < LOUDEST  # False for NaN
        if not sound.all():
            seconds = (at + int(np.argmin(sound))) / rate
            raise GlassformerError(
                f"{path}: NaN, infinity or a huge number (at {seconds:.3f} s); export it again, or "
                f"remove it"
            )
        if not len(mono):
            break
        at += len(mono)
        yield mono
    if last is not None and at < last - MISSING * rate:
        raise GlassformerError(
            f"{where}: it ends too early (after {(at - first) / rate:.1f} of "
            f"{(last - first) / rate:.1f} s); fetch it again, or remove it"
        )
    _check_length(where, at - first, rate)


def resampled(blocks: Iterable[Sound], source: int, target: int) -> Iterator[Sound]:
    """A recording at another rate."""
    if source == target:
        yield from blocks
        return
    stream = import_soxr().ResampleStream(source, target, 1, dtype="float32")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.empty(0, dtype=np.float32), last=True)


def check_numbers(name: Path | str, rate: int, channels: int) -> None:
    """Refuse a rate and a number of channels that only a damaged header has."""
    lowest, highest = RATES
    if not lowest <= rate <= highest or not 1 <= channels <= MOST_CHANNELS:
        raise GlassformerError(
            f"{name}: its header is damaged ({rate} Hz, channels: {channels}); "
            f"export or fetch it again"
        )


def _check_header(path: Path, decoder: Decoder) -> None:
    check_numbers(path, decoder.rate, decoder.channels)
    if decoder.truncated:
        raise GlassformerError(
            f"{path}: truncated, its header promises more sound than there is; fetch it again, "
            f"or remove it"
        )


def _check_length(where: str, frames: int, rate: int) -> None:
    if frames < SHORTEST * rate:
        samples = "1 sample" if frames == 1 else f"{frames} samples"
        raise GlassformerError(
            f"{where}: too short ({samples} at {rate} Hz, less than {SHORTEST * 1000:.0f} ms); "
            f"remove it, or record it again"
        )
