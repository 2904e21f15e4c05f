"""The reader of each file format."""

from collections.abc import Callable, Iterator
from pathlib import Path

from glassformer.data.rows import Row
from glassformer.data.sources.files import suffix_of
from glassformer.data.sources.json_lines import read_json_lines
from glassformer.data.sources.parquet import read_parquet
from glassformer.data.sources.plain import read_plain
from glassformer.data.sources.table import read_table
from glassformer.data.sources.tmx import read_tmx

Reader = Callable[[Path, str | None], Iterator[Row]]


def reader_of(path: Path) -> Reader:
    """The reader by suffix; plain text by default."""
    return SOURCES.get(suffix_of(path), read_plain)


def is_table(path: Path) -> bool:
    """Whether the file has columns of its own."""
    return reader_of(path) is not read_plain


SOURCES: dict[str, Reader] = {
    ".csv": read_table,
    ".tsv": read_table,
    ".tab": read_table,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json_lines,
    ".parquet": read_parquet,
    ".tmx": read_tmx,
    ".txt": read_plain,
}
