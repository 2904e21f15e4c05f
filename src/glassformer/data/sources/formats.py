"""The reader of each file format; those of plain text and JSON Lines, where a line is a row."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from glassformer.data.rows import Row, row_of
from glassformer.data.sources.decoding import lines
from glassformer.data.sources.files import suffix_of
from glassformer.data.sources.parquet import read_parquet
from glassformer.data.sources.table import read_table
from glassformer.data.sources.tmx import read_tmx
from glassformer.errors import GlassformerError

LONGEST_NUMBER = 4000  # digits; Python refuses to convert more

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
            values = json.loads(line, parse_int=_integer)
            if not isinstance(values, dict):
                raise GlassformerError(
                    f"{where}: {_name(values)} instead of an object; "
                    f'write every line like {{"text": "...", "label": "..."}}'
                )
            row = row_of(values, str(path), number, line_number)
        except json.JSONDecodeError as error:
            raise GlassformerError(
                f"{where}: not JSON ({error.msg} at character {error.pos + 1}); "
                f"write one complete JSON object per line"
            ) from None
        except RecursionError:
            raise GlassformerError(f"{where}: JSON nested too deeply; use plain values") from None
        yield row


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < LONGEST_NUMBER else digits


def _name(value: Any) -> str:
    """What a JSON value is, in words."""
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


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
