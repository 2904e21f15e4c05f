"""Samples: what a job keeps of the raw rows, by part, in memory-mapped files.

Each is a small dict by role (text, label, ...), with `where` it came from. Parts are train, valid
and test; the numbers of a part's samples come from `rows`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Int, UInt8

from glassformer.data.ragged import Texts
from glassformer.errors import GlassformerError

PARTS = ("train", "valid", "test")
NO_PART = 255

Sample = dict[str, Any]


class Samples:
    """All samples of a run, in the order they were read. Any number of processes may open them.

    Attributes:
        parts: The number of each sample's part in PARTS, or NO_PART.
    """

    def __init__(self, folder: Path, records: Texts, parts: UInt8[np.ndarray, " samples"]) -> None:
        self.folder, self.records, self.parts = folder, records, parts

    @classmethod
    def write(cls, folder: Path, samples: Iterable[tuple[str, Sample]]) -> "Samples":
        """Store samples with the part each belongs to, one by one."""
        parts = bytearray()

        def records() -> Iterator[str]:
            for part, sample in samples:
                parts.append(PARTS.index(part))
                yield json.dumps(sample, ensure_ascii=False)

        Texts.write(folder / "samples", records())
        cls.assign(folder, np.frombuffer(parts, dtype=np.uint8))
        return cls.open(folder)

    @staticmethod
    def assign(folder: Path, parts: UInt8[np.ndarray, " samples"]) -> None:
        """Say which part each stored sample belongs to."""
        np.save(folder / "parts.npy", parts, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path) -> "Samples":
        """What `write` stored."""
        records, path = Texts.open(folder / "samples"), folder / "parts.npy"
        try:
            parts = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            reason = str(error).splitlines()[0]
            raise GlassformerError(f"{path}: not whole ({reason}); copy the run again") from None
        if parts.dtype != np.uint8 or parts.shape != (len(records),):
            raise GlassformerError(
                f"{path}: does not belong to the samples beside it, it has {len(parts)} rows "
                f"and they are {len(records)}; copy the run again"
            )
        return cls(folder, records, parts)

    def rows(self, part: str) -> Int[np.ndarray, " rows"]:
        """The numbers of the samples of a part."""
        return self._rows[part]

    @cached_property
    def _rows(self) -> Mapping[str, Int[np.ndarray, " rows"]]:
        return {part: np.flatnonzero(self.parts == n) for n, part in enumerate(PARTS)}

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, row: SupportsIndex) -> Sample:
        return json.loads(self.records[int(row)])

    def __iter__(self) -> Iterator[Sample]:
        return (self[row] for row in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the same files instead of being sent what is in them."""
        return Samples.open, (self.folder,)

    def of(self, part: str) -> Iterator[Sample]:
        """The samples of a part, one by one."""
        return (self[row] for row in self.rows(part).tolist())

    def texts(self, part: str, role: str = "text") -> list[str]:
        """One role of all samples of a part, in memory."""
        return [sample[role] for sample in self.of(part)]
