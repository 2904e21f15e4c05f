"""Sound from a pipe, as it arrives: WAV, or raw 16-bit samples of one channel.

    arecord -f S16_LE -r 16000 | glassformer predict RUN --stream -
    ffmpeg -i talk.mp4 -f s16le -ac 1 -ar 16000 - | glassformer predict RUN --stream -

A pipe may break off anywhere, and the header of a WAV file that is still being written does not
know its length: sound ends where the pipe does.
"""

import math
import os
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import numpy as np
from jaxtyping import Float32

from glassformer.data.audio.decoders import STREAMED
from glassformer.data.audio.reading import check_numbers, resampled
from glassformer.errors import GlassformerError

Sound = Float32[np.ndarray, " _"]  # no name: each block has its own length

AT_ONCE = 1 << 16  # bytes
WAIT = 0.2  # seconds until a request to stop is seen
LONGEST_HEADER = 1 << 20  # bytes
EXTENSIBLE = 0xFFFE  # a WAV format that names the true one further behind
OTHERS = {
    b"fLaC": 0,
    b"OggS": 0,
    b"ID3": 0,
    b"\x1aE\xdf\xa3": 0,
    b"ftyp": 4,
}  # where they begin
NAME = "standard input"
ADVICE = "convert it with `ffmpeg -i - -f s16le -ac 1 -ar 16000 -`"


@dataclass(frozen=True, slots=True)
class Samples:
    """How samples are written: (1, 16) are 16-bit integers, (3, 32) floating-point numbers."""

    rate: int
    channels: int = 1
    form: tuple[int, int] = (1, 16)

    @property
    def size(self) -> int:
        """Bytes of one sample of every channel."""
        return self.channels * self.form[1] // 8


def standard_input() -> int:
    """The file descriptor of standard input, which must be a pipe or a file."""
    if sys.stdin is None:
        raise GlassformerError("standard input is closed; pipe sound in, or name a file")
    if sys.stdin.isatty():
        raise GlassformerError(
            "standard input is a terminal; pipe sound in, as from `arecord -f S16_LE -r 16000`"
        )
    return sys.stdin.fileno()


def piped_sound(
    descriptor: int, target: int, rate: int | None, stopped: Callable[[], bool]
) -> Iterator[Sound]:
    """What arrives at a file descriptor, as one channel, until it ends or `stopped`.

    Args:
        target: Samples a second of what is returned.
        rate: Of raw samples; by default the same.
    """
    pieces = arriving(descriptor, stopped)
    samples, pieces = read_header(pieces, rate or target)
    if rate is not None and rate != samples.rate:
        raise GlassformerError(
            f"{NAME}: its header says {samples.rate} Hz, but --rate {rate}; leave out --rate"
        )
    check_numbers(NAME, samples.rate, samples.channels)
    return resampled(mono(samples, pieces), samples.rate, target)


def arriving(descriptor: int, stopped: Callable[[], bool]) -> Iterator[bytes]:
    """Bytes as they arrive."""
    while not stopped():
        ready, _, _ = select.select([descriptor], [], [], WAIT)
        if ready:
            piece = os.read(descriptor, AT_ONCE)
            if not piece:
                return
            yield piece


def read_header(pieces: Iterator[bytes], rate: int) -> tuple[Samples, Iterator[bytes]]:
    """How samples are written, and the bytes of them; `rate` is that of raw ones."""
    held = bytearray()

    def need(count: int) -> bool:
        while len(held) < count <= LONGEST_HEADER and (piece := next(pieces, b"")):
            held.extend(piece)
        return len(held) >= count

    need(12)
    for mark, at in OTHERS.items():
        if held[at : at + len(mark)] == mark:
            raise GlassformerError(f"{NAME}: neither WAV nor raw 16-bit samples; {ADVICE}")
    if held[:4] not in (b"RIFF", b"RF64") or held[8:12] != b"WAVE":
        return Samples(rate), chain([bytes(held)], pieces)
    at, found = 12, None
    while need(at + 8):
        name, size = held[at : at + 4], int.from_bytes(held[at + 4 : at + 8], "little")
        if name == b"data" and found is not None:
            return found, limited(chain([bytes(held[at + 8 :])], pieces), size)
        if not need(at + 8 + size):
            break
        if name == b"fmt ":
            found = wave_format(bytes(held[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    raise GlassformerError(f"{NAME}: a WAV header without samples; {ADVICE}")


def wave_format(chunk: bytes) -> Samples:
    """The format that a WAV header describes."""
    chunk = chunk.ljust(26, b"\0")
    form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", chunk)
    if form == EXTENSIBLE:
        (form,) = struct.unpack_from("<H", chunk, 24)
    if (form, bits) not in FORMATS:
        raise GlassformerError(f"{NAME}: WAV of format {form} with {bits} bits; {ADVICE}")
    return Samples(rate, channels, (form, bits))


def limited(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """As many bytes as a header promises; all, if it was written before the end was known."""
    left = size if 0 < size < STREAMED else math.inf
    for piece in pieces:
        yield piece if len(piece) <= left else piece[: int(left)]
        left -= len(piece)
        if left <= 0:
            return


def mono(samples: Samples, pieces: Iterator[bytes]) -> Iterator[Sound]:
    """The average of the channels; bytes of a sample that breaks off are dropped."""
    rest = b""
    for piece in pieces:
        rest += piece
        whole = len(rest) // samples.size * samples.size
        if whole:
            values = FORMATS[samples.form](rest[:whole]).reshape(-1, samples.channels)
            if not np.isfinite(values).all():
                raise GlassformerError(f"{NAME}: NaN or infinity among the samples; {ADVICE}")
            yield values.mean(axis=1, dtype=np.float32)
        rest = rest[whole:]


def _integers(kind: str, scale: float) -> Callable[[bytes], np.ndarray]:
    return lambda data: np.frombuffer(data, kind).astype(np.float32) / np.float32(scale)


def _of_24_bits(data: bytes) -> np.ndarray:
    wide = np.zeros((len(data) // 3, 4), dtype=np.uint8)
    wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return wide.view("<i4")[:, 0].astype(np.float32) / np.float32(2**31)


FORMATS: dict[tuple[int, int], Callable[[bytes], np.ndarray]] = {
    (1, 8): lambda data: (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128,
    (1, 16): _integers("<i2", 2.0**15),
    (1, 24): _of_24_bits,
    (1, 32): _integers("<i4", 2.0**31),
    (3, 32): _integers("<f4", 1.0),
    (3, 64): _integers("<f8", 1.0),
}


@contextmanager
def until_interrupted() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM arrived: the first ends a stream, the second the program."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped.is_set
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(number: int, frame: object) -> None:
        stopped.set()
        restore()

    for number in before:
        signal.signal(number, stop)
    try:
        yield stopped.is_set
    finally:
        restore()
