"""The reader of each file format; those of plain text and JSON Lines, where a line is a row.

A format is known by the suffix of the file. A single file with another suffix, or with none, may
still be a table: `reader_of` looks at its head, `reader_named` and `is_table` go by its name.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from glassformer.data.rows import Row, row_of
from glassformer.data.sources.decoding import lines
from glassformer.data.sources.files import opened, suffix_of
from glassformer.data.sources.parquet import MAGIC as PARQUET, read_parquet
from glassformer.data.sources.table import looks_like_table, read_table
from glassformer.data.sources.tmx import read_tmx
from glassformer.errors import GlassformerError

LONGEST_NUMBER = 4000  # digits; Python refuses to convert more
REPEATED_KEY = "a key given twice, of which the last counts"

Reader = Callable[[Path, str | None], Iterator[Row]]


def read_plain(path: Path, encoding: str | None) -> Iterator[Row]:
    r"""One row per line; blank lines are skipped but counted, so that row and line numbers agree.

    Only \n ends a line: a stray \r must not misalign parallel files.
    """
    for number, line in enumerate(lines(path, encoding, newline="\n"), start=1):
        if line.strip():
            yield Row({"text": line.rstrip("\r\n")}, str(path), number)


def read_json_lines(path: Path, encoding: str | None) -> Iterator[Row]:
    """One row per line; blank lines are skipped."""
    number = 0
    for line_number, line in enumerate(lines(path, encoding), start=1):
        if not line.strip():
            continue
        number += 1
        where = f"{path} row {number} (line {line_number})"
        try:
            twice = list[str]()
            values = json.loads(line, parse_int=_integer, object_pairs_hook=_noting(twice))
            if not isinstance(values, dict):
                raise GlassformerError(
                    f"{where}: {_name(values)} instead of an object; "
                    f'write every line like {{"text": "...", "label": "..."}}'
                )
            row = row_of(values, str(path), number, line_number)
            if twice:
                row.losses = (*row.losses, REPEATED_KEY)
        except json.JSONDecodeError as error:
            raise GlassformerError(
                f"{where}: not JSON ({error.msg} at character {error.pos + 1}); "
                f"write one complete JSON object per line"
            ) from None
        except RecursionError:
            raise GlassformerError(f"{where}: JSON nested too deeply; use plain values") from None
        yield row


def _noting(twice: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Makes objects of their entries, the last of each key, and notes keys that are repeated."""

    def made(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(entries)
        if len(values) < len(entries):
            counts = Counter(key for key, _ in entries)
            twice.extend(key for key, count in counts.items() if count > 1)
        return values

    return made


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < LONGEST_NUMBER else digits


def _name(value: Any) -> str:
    """What a JSON value is, in words."""
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def reader_named(path: Path) -> Reader:
    """The reader by suffix; plain text by default."""
    return SOURCES.get(suffix_of(path), read_plain)


def reader_of(path: Path) -> Reader:
    """The reader by suffix; where that says nothing, or plain text, by what the file looks like."""
    reader = reader_named(path)
    if reader is not read_plain or not path.is_file():
        return reader
    with opened(path, binary=True) as stream:
        if stream.peek().startswith(PARQUET):
            return read_parquet
    return read_table if looks_like_table(path) else read_plain


def is_table(path: Path) -> bool:
    """Whether the file has columns of its own, by its name."""
    return reader_named(path) is not read_plain


def read_file(
    path: Path,
    encoding: str | None,
    *,
    header: bool | None = None,
    names: Collection[str] = (),
) -> Iterator[Row]:
    """The rows of a file; `header` and `names` are for text tables, as in `read_table`."""
    reader = reader_of(path)
    if reader is read_table:
        return read_table(path, encoding, header=header, names=names)
    return reader(path, encoding)


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
