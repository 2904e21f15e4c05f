"""The baseline: the transcript of the most similar training recording.

Each recording is reduced to the mean features of some equal stretches of time; the nearest is that
with the least squared distance. It knows whole recordings only, so its score tells how much of the
data can be had by heart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from glassformer.data.audio.extractor import Features

STRETCHES = 8
TOGETHER = 256  # recordings compared at once


@dataclass(frozen=True, slots=True)
class NearestRecording:
    """Recordings with their transcripts, looked up by similarity."""

    outlines: Float[np.ndarray, "rows values"]
    texts: Sequence[str]

    @staticmethod
    def of(sounds: Iterable[Features], texts: Sequence[str]) -> "NearestRecording":
        """Store these recordings, at least one."""
        return NearestRecording(np.stack([outline(sound) for sound in sounds]), texts)

    def __call__(self, sounds: Iterable[Features]) -> list[str]:
        """For each recording, the transcript of the nearest one."""
        queries = np.stack([outline(sound) for sound in sounds])
        sizes = np.square(self.outlines).sum(1)
        found: list[str] = []
        for start in range(0, len(queries), TOGETHER):
            some = queries[start : start + TOGETHER]
            apart = sizes - 2 * some @ self.outlines.T  # the size of the query changes no order
            found += [self.texts[row] for row in apart.argmin(1).tolist()]
        return found


def outline(sound: Features) -> Float[np.ndarray, " values"]:
    """The mean features of equal stretches of a recording, and its length."""
    frames = sound.astype(np.float32)
    edges = np.linspace(0, len(frames), STRETCHES + 1).astype(int)
    stretches = [
        frames[start : max(end, start + 1)].mean(0)
        for start, end in zip(np.minimum(edges[:-1], len(frames) - 1), edges[1:], strict=True)
    ]
    return np.append(np.concatenate(stretches), np.float32(np.log(len(frames))))
