"""Samples: what a job keeps of the raw rows, by split, in memory-mapped files.

Each is a small dict by role (text, label, ...), with its location in `where`. Splits are train,
valid and test; `rows` gives the numbers of the samples of a split. The texts of samples that were
just written are also spooled, so that nothing is decoded to prepare a run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Int, UInt8

from glassformer.data.arrays import map_numbers
from glassformer.data.ragged import Texts
from glassformer.data.spool import Spool
from glassformer.errors import GlassformerError

SPLITS = ("train", "valid", "test")
NO_SPLIT = 255
MOST_ROWS, MOST_BYTES = 512, 1 << 22  # decoded together, about

Sample = dict[str, Any]
Splits = UInt8[np.ndarray, " samples"]
Spools = dict[str, Spool]

_as_json = json.JSONEncoder(ensure_ascii=False, default=np.ndarray.tolist).encode


class StoredSample(dict[str, Any]):
    """A stored sample; a missing role is an error when it is accessed."""

    def __missing__(self, role: str) -> Any:
        raise GlassformerError(f"{self.get('where')}: its {role} is missing; copy the run again")


class Samples:
    """All samples of a run, in the order they were read. Any number of processes may open them.

    Attributes:
        splits: The number of each sample's split in SPLITS, or NO_SPLIT.
        spools: The texts of each role, in samples that were just written.
    """

    def __init__(
        self, folder: Path, records: Texts, splits: Splits, spools: Spools | None = None
    ) -> None:
        self.folder, self.records, self.splits = folder, records, splits
        self.spools: Spools = spools or {}

    @classmethod
    def write(cls, folder: Path, samples: Iterable[tuple[str, Sample]]) -> "Samples":
        """Store samples with the split each belongs to, one by one."""
        splits, spools = bytearray(), _Spooling(folder)

        def records() -> Iterator[str]:
            for split, sample in samples:
                splits.append(SPLITS.index(split))
                spools.add(sample)
                yield _as_json(sample)

        Texts.write(folder / "samples", records())
        cls.assign(folder, np.frombuffer(splits, dtype=np.uint8))
        written = cls.open(folder)
        written.spools = spools.complete
        return written

    @staticmethod
    def assign(folder: Path, splits: Splits) -> None:
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

    def with_splits(self, splits: Splits) -> "Samples":
        """The same samples in other splits, in the same folder."""
        self.assign(self.folder, splits)
        return Samples(self.folder, self.records, splits, self.spools)

    def __getitem__(self, row: SupportsIndex) -> Sample:
        try:
            return StoredSample(json.loads(self.records[int(row)]))
        except (ValueError, TypeError, RecursionError):
            where = self.folder / "samples.values.npy"
            raise GlassformerError(
                f"{where}: row {int(row) + 1} is damaged; copy the run again"
            ) from None

    def __iter__(self) -> Iterator[Sample]:
        return self.take(range(len(self)))

    def take(self, rows: Sequence[int]) -> Iterator[Sample]:
        """Some samples, one by one; many short ones are decoded together."""
        size = len(self.records.rows.values) + 1
        together = max(1, min(MOST_ROWS, MOST_BYTES * len(self) // size))
        for first in range(0, len(rows), together):
            some = rows[first : first + together]
            try:
                decoded = json.loads(b"[%b]" % b",".join(self.records.lines(some)))
                found = list(map(StoredSample, decoded))
            except (ValueError, TypeError, RecursionError):
                found = []
            yield from found if len(found) == len(some) else map(self.__getitem__, some)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by path: another process opens the same files."""
        return Samples.open, (self.folder,)

    def of(self, split: str) -> Iterator[Sample]:
        """The samples of a split, one by one."""
        return self.take(self.rows(split).tolist())

    def values(self, role: str, split: str | None = None) -> Iterator[Any]:
        """One role of all samples, or of those of a split, one by one."""
        if role in self.spools:
            chosen = self.splits == SPLITS.index(split) if split else None
            spooled = iter(self.spools[role])
            return spooled if chosen is None else compress(spooled, chosen)
        return (sample[role] for sample in (self.of(split) if split else self))

    def texts(self, split: str, role: str = "text") -> list[str]:
        """One role of all samples of a split, in memory."""
        return list(self.values(role, split))


class _Spooling:
    """Spools the roles that are texts in every sample."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spools: Spools | None = None
        self.incomplete: set[str] = set()

    def add(self, sample: Sample) -> None:
        """Spool the texts of a sample; the first sample determines which roles are texts."""
        if self.spools is None:
            texts = (role for role, value in sample.items() if isinstance(value, str))
            self.spools = {role: Spool(self.folder) for role in texts if role != "where"}
        for role, spool in self.spools.items():
            value = sample.get(role)
            if isinstance(value, str):
                spool.append(value)
            else:
                self.incomplete.add(role)

    @property
    def complete(self) -> Spools:
        """The spools that have a text of every sample."""
        spools = self.spools or {}
        return {role: spools[role] for role in spools if role not in self.incomplete}
