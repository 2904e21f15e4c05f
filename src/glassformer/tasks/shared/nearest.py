"""The most similar recordings, for baselines: how much of the data can be had by heart?

Each recording is reduced to the mean features of some equal stretches of time; the nearest are
those with the least squared distance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.numpy import save_file

from glassformer.data.audio.extractor import Features
from glassformer.errors import GlassformerError
from glassformer.files import read_arrays, read_json, replacing, write_json

TENSORS, ANSWERS = "nearest.safetensors", "nearest.json"
STRETCHES = 8
TOGETHER = 256  # recordings compared at once


@dataclass(frozen=True, slots=True)
class NearestRecordings:
    """Recordings, looked up by similarity."""

    outlines: Float[np.ndarray, "rows values"]

    @staticmethod
    def of(sounds: Iterable[Features]) -> "NearestRecordings":
        """Store these recordings, at least one."""
        return NearestRecordings(np.stack([outline(sound) for sound in sounds]))

    def __call__(self, sounds: Iterable[Features], count: int = 1) -> Int[np.ndarray, "N count"]:
        """For each recording, the numbers of the nearest ones, the nearest first."""
        queries = np.stack([outline(sound) for sound in sounds])
        sizes = np.square(self.outlines).sum(1)
        found = []
        for start in range(0, len(queries), TOGETHER):
            some = queries[start : start + TOGETHER]
            apart = sizes - 2 * some @ self.outlines.T  # the size of the query changes no order
            found.append(apart.argsort(axis=1, kind="stable")[:, :count])
        return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class StoredNearest:
    """Recordings as a run keeps them, with the right answer to each: a text, or labels."""

    recordings: NearestRecordings
    answers: Sequence[Any]

    def save(self, folder: Path) -> None:
        """Write the two files, each at once."""
        with replacing(folder / TENSORS) as half:
            save_file({"outlines": self.recordings.outlines}, half)
        write_json(self.answers, folder / ANSWERS)

    @staticmethod
    def load(folder: Path) -> "StoredNearest | None":
        """What `save` wrote; None if the run keeps no recordings."""
        if not (folder / ANSWERS).exists():
            return None
        try:
            answers = read_json(folder / ANSWERS)
            outlines = read_arrays(folder / TENSORS)["outlines"]
            if outlines.ndim != 2 or len(outlines) != len(answers):
                raise ValueError(f"it has shape {outlines.shape} for {len(answers):,} answers")
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise GlassformerError(
                f"{folder / TENSORS}: not the baseline of a run ({error}); copy the run again"
            ) from None
        return StoredNearest(NearestRecordings(outlines), answers)


def outline(sound: Features) -> Float[np.ndarray, " values"]:
    """The mean features of equal stretches of a recording, and its length."""
    frames = sound.astype(np.float32)
    edges = np.linspace(0, len(frames), STRETCHES + 1).astype(int)
    stretches = [
        frames[start : max(end, start + 1)].mean(0)
        for start, end in zip(np.minimum(edges[:-1], len(frames) - 1), edges[1:], strict=True)
    ]
    return np.append(np.concatenate(stretches), np.float32(np.log(len(frames))))
