"""Parquet, through pyarrow, batch by batch. It must be read from its end, so one that is packed is
unpacked into a file that is gone afterwards.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from glassformer.data.rows import Row, refuse_too_wide, row_of
from glassformer.data.sources.files import BUFFER, opened, packing_of, reason
from glassformer.errors import GlassformerError, install

MAGIC = b"PAR1"
BATCH = 256  # rows
MOST_UNPACKED = 2**30  # bytes


def read_parquet(path: Path, encoding: str | None) -> Iterator[Row]:
    """The rows of a Parquet file, which declares its own encoding."""
    for number, values in enumerate(_records(path), start=1):
        yield row_of(values, str(path), number)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Every row as Python values. Whatever pyarrow raises, the file is at fault."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError:
        raise GlassformerError(
            f"{path}: Parquet needs pyarrow, which is not installed; {install('tables')}"
        ) from None
    try:
        with _seekable(path) as stream, parquet.ParquetFile(stream) as file:
            names = file.schema_arrow.names
            refuse_too_wide(path, len(names))
            _refuse_twins(path, names)
            for batch in file.iter_batches(batch_size=BATCH):
                columns = [_plain(pyarrow, column).to_pylist() for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    yield dict(zip(names, cells, strict=True))
    except GlassformerError:
        raise
    except PermissionError as error:
        raise GlassformerError(
            f"{path}: cannot be read ({reason(error)}); check its permissions"
        ) from None
    except Exception as error:  # a dozen kinds, from OSError to OverflowError
        raise GlassformerError(
            f"{path}: not a valid Parquet file ({reason(error)[:200]}); write or fetch it again"
        ) from None


@contextmanager
def _seekable(path: Path) -> Iterator[IO[bytes]]:
    """The file, unpacked, to be read from any place."""
    if not packing_of(path):
        with path.open("rb") as stream:
            yield stream
        return
    with tempfile.TemporaryFile() as unpacked:
        with opened(path, binary=True) as packed:
            while piece := packed.read(BUFFER):
                unpacked.write(piece)
                if unpacked.tell() > MOST_UNPACKED:
                    raise GlassformerError(
                        f"{path}: unpacks to more than {MOST_UNPACKED:,} bytes; look at what is in "
                        f"it, and give it unpacked"
                    )
        unpacked.seek(0)
        yield unpacked


def _refuse_twins(path: Path, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise GlassformerError(f"{path}: two columns are named {name!r}; rename one of them")


def _plain(pyarrow: Any, column: Any) -> Any:
    """Dates and times as text: Python's own cannot hold all of Arrow's."""
    return column.cast(pyarrow.string()) if pyarrow.types.is_temporal(column.type) else column
