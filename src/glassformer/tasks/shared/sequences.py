"""Sequences of numbers, which a frontend of one's own reads: sensors, skeletons, lips, signs.

A sample names a file of numpy (.npy, or .npz with one array), or holds the numbers as lists. The
first axis is time; all others together are the channels, the same in every sample.
"""

import json
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config import ModelConfig
from glassformer.core.layout import Layout
from glassformer.data.ragged import Ragged
from glassformer.data.samples import Sample, Samples
from glassformer.data.sources.files import kind_of, reason
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.sound import padded_features
from glassformer.tasks.shared.text_data import ARRAYS, is_numbers

STORE = "sequences"
MOST_BYTES = 1 << 30  # of one array, unpacked

Sequence = Float[np.ndarray, "T channels"]
Given = str | Path | np.ndarray


def read_sequence(given: Given, channels: int | None = None) -> Sequence:
    """The numbers of a sequence: a file, lists as JSON, or an array.

    Args:
        channels: How many there must be.
    """
    if isinstance(given, np.ndarray):
        name = "the array"
    else:
        name, given = _opened(str(given))
    if given.dtype.kind not in "fiub" or not given.ndim or not given.size:
        raise GlassformerError(
            f"{name}: holds {given.dtype} of shape {given.shape}; a sequence has numbers, time "
            f"along its first axis"
        )
    frames = given.reshape(len(given), -1).astype(np.float32)
    if not np.isfinite(frames).all():
        raise GlassformerError(f"{name}: holds numbers that are not finite; fill the gaps first")
    if channels is not None and frames.shape[1] != channels:
        raise GlassformerError(
            f"{name}: has {frames.shape[1]:,} channels, the others have {channels:,}; give "
            f"sequences of one kind"
        )
    return frames


def as_given(value: Given) -> Given:
    """An input from Python or the command line, where a text is a file unless it holds lists."""
    return Path(value) if isinstance(value, str) and not is_numbers(value) else value


def _opened(text: str) -> tuple[str, np.ndarray]:
    """A name for messages, and the array."""
    if is_numbers(text):
        try:
            return f"{text[:40]} ...", np.array(json.loads(text))
        except ValueError:
            raise GlassformerError(
                f"{text[:40]} ...: its rows have different lengths; give each the same channels"
            ) from None
    path = Path(text)
    if path.suffix not in ARRAYS:
        raise GlassformerError(f"{text[:60]!r}: not a sequence; give a file that ends in .npz")
    kind_of(path)
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as packed:
                if sum(one.file_size for one in packed.infolist()) > MOST_BYTES:
                    raise ValueError(f"more than {MOST_BYTES:,} bytes")
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return text, found
        with found:
            if len(found.files) != 1:
                raise ValueError(f"{len(found.files)} arrays instead of one")
            return text, found[found.files[0]]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise GlassformerError(
            f"{path}: not a file with one array of numpy ({reason(error)}); write it again with "
            f"numpy.savez(path, array)"
        ) from None


def sequence_of(sample: Sample, role: str, channels: int | None = None) -> Sequence:
    """The sequence of a sample; messages name its row."""
    try:
        return read_sequence(str(sample[role]), channels)
    except GlassformerError as error:
        raise GlassformerError(f"{sample['where']}: {error}") from None


def reading_sequences(model: ModelConfig, samples: Samples, longest: int) -> ModelConfig:
    """The model for sequences of so many channels, which writes texts of up to so many tokens."""
    first = sequence_of(next(samples.of("train")), "source")
    writes = model.decoder
    if writes is not None:
        writes = replace(writes, max_length=max(writes.max_length, longest))
    frontend = replace(model.frontend, channels=first.shape[1])
    return replace(model, frontend=frontend, decoder=writes, share=False)


class SequenceStore:
    """The sequences of a run, on disk."""

    def __init__(self, data: Path, channels: int) -> None:
        self.rows, self.channels = Ragged.open(data / STORE), channels

    @staticmethod
    def write(data: Path, sequences: Iterable[Sequence]) -> None:
        """Store them one by one."""
        Ragged.write(data / STORE, (one.ravel() for one in sequences), np.float32)

    @property
    def lengths(self) -> Int[np.ndarray, " rows"]:
        """The steps of each."""
        return self.rows.lengths // self.channels

    def __getitem__(self, row: int) -> Sequence:
        return self.rows[row].reshape(-1, self.channels)

    def padded(
        self, rows: Int[np.ndarray, " chosen"]
    ) -> tuple[Float[Tensor, "B frames channels"], Layout]:
        """Some of them in one tensor."""
        return padded_features([self[row] for row in rows.tolist()])
