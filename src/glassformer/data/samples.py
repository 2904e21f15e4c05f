"""Samples: what a job keeps of the raw rows, by split, in memory-mapped files.

Each is a small dict by role (text, label, ...), with its location in `where`. Splits are train,
valid and test; `rows` gives the numbers of the samples of a split.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Int, UInt8

from glassformer.data.arrays import map_numbers
from glassformer.data.ragged import Texts
from glassformer.errors import GlassformerError

SPLITS = ("train", "valid", "test")
NO_SPLIT = 255

Sample = dict[str, Any]


class StoredSample(dict[str, Any]):
    """A stored sample; a missing role is an error when it is accessed."""

    def __missing__(self, role: str) -> Any:
        raise GlassformerError(f"{self.get('where')}: its {role} is missing; copy the run again")


class Samples:
    """All samples of a run, in the order they were read. Any number of processes may open them.

    Attributes:
        splits: The number of each sample's split in SPLITS, or NO_SPLIT.
    """

    def __init__(self, folder: Path, records: Texts, splits: UInt8[np.ndarray, " samples"]) -> None:
        self.folder, self.records, self.splits = folder, records, splits

    @classmethod
    def write(cls, folder: Path, samples: Iterable[tuple[str, Sample]]) -> "Samples":
        """Store samples with the split each belongs to, one by one."""
        splits = bytearray()

        def records() -> Iterator[str]:
            for split, sample in samples:
                splits.append(SPLITS.index(split))
                yield json.dumps(sample, ensure_ascii=False, default=np.ndarray.tolist)

        Texts.write(folder / "samples", records())
        cls.assign(folder, np.frombuffer(splits, dtype=np.uint8))
        return cls.open(folder)

    @staticmethod
    def assign(folder: Path, splits: UInt8[np.ndarray, " samples"]) -> None:
        """Store the split of every sample."""
        np.save(folder / "parts.npy", splits, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path) -> "Samples":
        """What `write` stored."""
        records = Texts.open(folder / "samples")
        path = folder / "parts.npy"
        splits = map_numbers(path, (len(records),), NO_SPLIT + 1).astype(np.uint8)
        if not np.isin(splits, (*range(len(SPLITS)), NO_SPLIT)).all():
            raise GlassformerError(f"{path}: holds unknown splits; copy the run again")
        return cls(folder, records, splits)

    def rows(self, split: str) -> Int[np.ndarray, " rows"]:
        """The numbers of the samples of a split."""
        return self._rows[split]

    @cached_property
    def _rows(self) -> Mapping[str, Int[np.ndarray, " rows"]]:
        return {split: np.flatnonzero(self.splits == n) for n, split in enumerate(SPLITS)}

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, row: SupportsIndex) -> Sample:
        try:
            return StoredSample(json.loads(self.records[int(row)]))
        except (ValueError, TypeError, RecursionError):
            where = self.folder / "samples.values.npy"
            raise GlassformerError(
                f"{where}: row {int(row) + 1} is damaged; copy the run again"
            ) from None

    def __iter__(self) -> Iterator[Sample]:
        return (self[row] for row in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by path: another process opens the same files."""
        return Samples.open, (self.folder,)

    def of(self, split: str) -> Iterator[Sample]:
        """The samples of a split, one by one."""
        return (self[row] for row in self.rows(split).tolist())

    def texts(self, split: str, role: str = "text") -> list[str]:
        """One role of all samples of a split, in memory."""
        return [sample[role] for sample in self.of(split)]
