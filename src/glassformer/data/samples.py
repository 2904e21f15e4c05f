"""Samples: what a job keeps of the raw rows, by part, in memory-mapped files.

Each is a small dict by role (text, label, ...), with `where` it came from. Parts are train, valid
and test; the numbers of a part's samples come from `rows`.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from glassformer.data.ragged import Texts

PARTS = ("train", "valid", "test")

Sample = dict[str, Any]


class Samples:
    """All samples of a run, in the order they were read."""

    def __init__(self, records: Texts, parts: Int[np.ndarray, " samples"]) -> None:
        self.records, self.parts = records, parts
        self.rows = cache(self._rows)

    @classmethod
    def write(cls, folder: Path, samples: Iterable[tuple[str, Sample]]) -> "Samples":
        """Store samples with the part each belongs to, one by one."""
        parts = bytearray()

        def records() -> Iterator[str]:
            for part, sample in samples:
                parts.append(PARTS.index(part))
                yield json.dumps(sample, ensure_ascii=False)

        Texts.write(folder / "samples", records())
        np.save(folder / "parts.npy", np.frombuffer(parts, dtype=np.uint8), allow_pickle=False)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> "Samples":
        """What `write` stored."""
        parts = np.load(folder / "parts.npy", allow_pickle=False)
        return cls(Texts.open(folder / "samples"), parts)

    def _rows(self, part: str) -> Int[np.ndarray, " rows"]:
        """The numbers of the samples of a part."""
        return np.flatnonzero(self.parts == PARTS.index(part))

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, row: int) -> Sample:
        return json.loads(self.records[row])

    def of(self, part: str) -> Iterator[Sample]:
        """The samples of a part, one by one."""
        return (self[row] for row in self.rows(part).tolist())

    def texts(self, part: str, role: str = "text") -> list[str]:
        """One role of all samples of a part, in memory."""
        return [sample[role] for sample in self.of(part)]
