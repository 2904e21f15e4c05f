"""Long recordings: read piece by piece, each of which ends at a pause.

A piece is at most so long, and at least half of that. It is cut where its second half is quietest,
as heard through a window as wide as a short pause: a single frame may be as quiet in the middle of
a word. Nothing is heard twice, so that no word is, and memory does not grow with a recording.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from glassformer.data.audio.extractor import Features
from glassformer.data.samples import Samples
from glassformer.tasks.shared.sound_predictor import Recording

Sound = Float32[np.ndarray, " _"]  # no name: each has its own length

PAUSE = 0.3  # seconds
STEP = 0.01  # seconds between two measurements of loudness
QUIETEST = 1e-10  # power; all below is silence
AHEAD = 160  # seconds that are sorted by length, after the first piece


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """A part of a recording.

    Attributes:
        start, end: In seconds of the recording.
        last: Whether the recording ends with it.
    """

    recording: Recording
    features: Features
    start: float
    end: float
    last: bool


def cut_at_pauses(
    blocks: Iterable[Sound], rate: int, longest: float
) -> Iterator[tuple[Sound, bool]]:
    """Pieces of at most `longest` seconds, and whether each is the last.

    Args:
        blocks: A recording, at `rate` samples a second.
    """
    most, held = round(longest * rate), np.empty(0, dtype=np.float32)
    for block in blocks:
        held = np.concatenate([held, block])
        while len(held) > most:
            at = quietest(held[:most], rate)
            yield held[:at], False
            held = held[at:]
    yield held, True


def quietest(sound: Sound, rate: int) -> int:
    """The sample in the middle of the quietest moment in the second half of a sound."""
    step = max(1, round(STEP * rate))
    steps = sound[: len(sound) // step * step].reshape(-1, step)
    loudness = np.log(np.maximum(steps.var(axis=1), QUIETEST))
    width = min(round(PAUSE / STEP), len(loudness) // 4)
    window = np.hanning(width + 2)[1:-1]
    first = len(loudness) // 2
    heard = np.convolve(loudness[first:], window, mode="valid")
    return step * (first + int(heard.argmin()) + width // 2)


def longest_piece(samples: Samples, most: float) -> float:
    """A quarter more than the longest recording that is trained on; at least a second."""
    seconds = (sound["seconds"] for sound in samples.values("sound", "train"))
    longest = max((one for one in seconds if one <= most), default=0.0)
    return max(1.0, min(most, 1.25 * longest))


def windows(pieces: Iterable[Piece], *, at_once: bool = False) -> Iterator[list[Piece]]:
    """Many pieces at a time; the first alone, so that it is answered soon, unless `at_once`."""
    some, seconds, most = list[Piece](), 0.0, AHEAD if at_once else 0.0
    for piece in pieces:
        some.append(piece)
        seconds += piece.end - piece.start
        if seconds >= most:
            yield some
            some, seconds, most = [], 0.0, AHEAD
    if some:
        yield some
