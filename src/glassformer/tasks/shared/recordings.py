"""Recordings, whole or in part, and what is known of them once they were read."""

import math
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from glassformer.data.audio.reading import read_audio, read_blocks, sound_info
from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError

LATEST = 1e7  # seconds, 16 weeks
FULL = 0.999  # of the range: a sample this loud is probably clipped


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A recording, or what lies between two times of it, in seconds."""

    path: Path
    start: float = 0.0
    end: float | None = None

    def __str__(self) -> str:
        if self.end is None and not self.start:
            return str(self.path)
        return f"{self.path} from {self.start:g} to {'its end' if self.end is None else self.end}"

    @staticmethod
    def of(sample: Sample) -> "Part":
        """The recording of a sample; times that cannot be are refused."""
        path, times = Path(sample["path"]), [sample.get(name) or None for name in ("start", "end")]
        try:
            start, end = (None if time is None else float(time) for time in times)
            part = Part(path=path, start=start or 0.0, end=end)
        except ValueError:
            part = Part(path=path, start=math.nan)
        if not 0 <= part.start < (LATEST if part.end is None else part.end) <= LATEST:
            raise GlassformerError(
                f"{path}: impossible times ({times[0]} to {times[1]}); give seconds from the "
                f"beginning of the recording, the start first"
            )
        return part


@dataclass(frozen=True, kw_only=True, slots=True)
class SoundFacts:
    """The facts of a recording.

    Attributes:
        seconds, rate: Its length, and its samples a second.
        peak: The loudest sample, between 0 and 1.
        clipped: The share of samples at the end of the range.
        content: Equal for recordings that sound the same.
    """

    seconds: float
    rate: int
    peak: float
    clipped: float
    content: str

    def as_values(self) -> dict[str, Any]:
        """Plain values, for a sample."""
        return asdict(self)


def read_part(part: Part, rate: int) -> Float[np.ndarray, " samples"]:
    """The samples of a recording, at a rate."""
    return read_audio(part.path, rate, start=part.start, end=part.end)


def read_facts(part: Part) -> SoundFacts:
    """The facts of a recording, which is read once and never held as a whole."""
    rate, digest = sound_info(part.path).rate, blake2b(digest_size=16)
    digest.update(str(rate).encode())
    peak, clipped, samples = 0.0, 0, 0
    for block in read_blocks(part.path, rate, start=part.start, end=part.end):
        loud = np.abs(block)
        peak = max(peak, float(loud.max(initial=0.0)))
        clipped += int((loud >= FULL).sum())
        samples += len(block)
        digest.update(block.astype("<f4").tobytes())
    return SoundFacts(
        seconds=samples / rate,
        rate=rate,
        peak=peak,
        clipped=clipped / max(1, samples),
        content=digest.hexdigest(),
    )
