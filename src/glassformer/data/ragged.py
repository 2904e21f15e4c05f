"""Rows of different lengths in one memory-mapped file, so that data may be larger than memory.

A `Ragged` is stored in two files: `<stem>.values.npy` holds all rows end to end, `<stem>.ends.npy`
their ends. Both are plain numpy files, without pickled objects. `Texts` is the same for strings.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from glassformer.data.arrays import map_array, refuse_outside
from glassformer.data.jagged import Jagged
from glassformer.errors import GlassformerError

Buffer = bytes | memoryview  # the values of one row; its length is their number


class Ragged:
    """Rows of numbers; `ragged[i]` is a read-only view of row `i`, not a copy.

    Args:
        stem: The path the names of both files start with.
        values: All rows, end to end.
        ends: Where each row ends in `values`.
    """

    def __init__(self, stem: Path, values: NDArray[Any], ends: NDArray[np.int64]) -> None:
        self.stem, self.values, self.ends = stem, values, ends

    @classmethod
    def write(
        cls, stem: str | Path, rows: Iterable[NDArray[Any]], dtype: DTypeLike = np.int32
    ) -> "Ragged":
        """Store the rows one by one; the files appear under their names when all are written."""
        kind = np.dtype(dtype)
        stored = (_as_stored(row, kind, number).data for number, row in enumerate(rows))
        return cls.write_buffers(stem, stored, kind)

    @classmethod
    def write_buffers(
        cls, stem: str | Path, rows: Iterable[Buffer], dtype: np.dtype[Any]
    ) -> "Ragged":
        """Store rows that are already in the form of the file."""
        stem = Path(stem)
        stem.parent.mkdir(parents=True, exist_ok=True)
        values, ends = _files(stem)
        half_values, half_ends = (path.with_name(path.name + ".part") for path in (values, ends))
        try:
            with half_values.open("wb") as file:
                found = _write_rows(file, rows, dtype)
            with half_ends.open("wb") as file:
                npy.write_array(file, found, allow_pickle=False)
            ends.unlink(missing_ok=True)  # never pair new values with old ends
            half_values.replace(values)
            half_ends.replace(ends)
        finally:
            half_values.unlink(missing_ok=True)
            half_ends.unlink(missing_ok=True)
        return cls.open(stem)

    @classmethod
    def open(cls, stem: str | Path, *, below: int | None = None) -> "Ragged":
        """Map what `write` stored.

        Args:
            below: Refuse values other than integers from 0 to `below` - 1.
        """
        paths = _files(Path(stem))
        values, ends = map(map_array, paths)
        last = int(ends[-1]) if len(ends) else 0
        if ends.dtype != np.int64 or last != len(values):
            raise GlassformerError(
                f"{stem}: its two files do not match (rows end at {last}, "
                f"but there are {len(values)} values); write it again"
            )
        found = cls(Path(stem), values, ends)
        if len(found) and found.lengths.min() < 0:
            raise GlassformerError(f"{paths[1]}: a row ends before it begins; copy the run again")
        if below is not None:
            refuse_outside(values, below, paths[0])
        return found

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each row."""
        return np.diff(self.ends, prepend=0)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each row begins in `values`."""
        return self.ends - self.lengths

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, row: int) -> NDArray[Any]:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row = row % len(self)
        start = self.ends[row - 1] if row else 0
        return self.values[start : self.ends[row]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    def take(self, rows: NDArray[np.int64], longest: int) -> Jagged:
        """Copy some rows, each truncated to `longest` values."""
        return self.slices(rows, np.zeros_like(rows), np.minimum(self.lengths[rows], longest))

    def slices(
        self, rows: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> Jagged:
        """Copy so many values of each of these rows, from a start of its own on."""
        shift = self.starts[rows] + starts - (np.cumsum(lengths) - lengths)
        places = np.repeat(shift, lengths) + np.arange(lengths.sum())
        return Jagged(self.values[places], lengths)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by path: another process maps the same files."""
        return Ragged.open, (self.stem,)


class Texts:
    """Strings in a `Ragged` of UTF-8 bytes; invalid Unicode round-trips unchanged."""

    def __init__(self, rows: Ragged) -> None:
        self.rows = rows

    @classmethod
    def write(cls, stem: str | Path, texts: Iterable[str]) -> "Texts":
        encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
        return cls(Ragged.write_buffers(stem, encoded, np.dtype(np.uint8)))

    @classmethod
    def open(cls, stem: str | Path) -> "Texts":
        rows = Ragged.open(stem)
        if rows.values.dtype != np.uint8:
            raise GlassformerError(
                f"{stem}: holds {rows.values.dtype} numbers instead of bytes of text; "
                f"open it as a Ragged"
            )
        return cls(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> str:
        return self.rows[row].tobytes().decode("utf-8", "surrogatepass")

    def lines(self, rows: Sequence[int]) -> list[memoryview]:
        """The bytes of some rows."""
        data, ends = self.rows.values.data, self.rows.ends[rows]
        starts = (ends - self.rows.lengths[rows]).tolist()
        return [data[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))


def _files(stem: Path) -> tuple[Path, Path]:
    return stem.with_name(stem.name + ".values.npy"), stem.with_name(stem.name + ".ends.npy")


def _write_rows(file: BinaryIO, rows: Iterable[Buffer], dtype: np.dtype[Any]) -> NDArray[np.int64]:
    """Stream the rows after a header that is completed at the end; returns the ends of the rows."""
    _write_header(file, 0, dtype)
    lengths = array("q")
    for row in rows:
        file.write(row)
        lengths.append(len(row))
    ends = np.cumsum(np.frombuffer(lengths, dtype=np.int64))
    file.seek(0)
    _write_header(file, int(ends[-1]) if lengths else 0, dtype)
    return ends


def _write_header(file: BinaryIO, length: int, dtype: np.dtype[Any]) -> None:
    # numpy leaves room in the header for the first axis to grow, so any length takes equal space.
    shape = {"shape": (length,), "fortran_order": False, "descr": npy.dtype_to_descr(dtype)}
    npy.write_array_header_1_0(file, shape)


def _as_stored(row: NDArray[Any], dtype: np.dtype[Any], number: int) -> NDArray[Any]:
    if row.ndim != 1:
        raise ValueError(f"row {number} has shape {row.shape}; a row has one axis")
    if row.dtype == dtype and row.flags.c_contiguous:
        return row
    stored = np.ascontiguousarray(row, dtype=dtype)
    if not np.array_equal(stored, row):
        raise ValueError(f"row {number} has values that do not fit {dtype}; choose a wider dtype")
    return stored
