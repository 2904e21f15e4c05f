"""Inputs of `predict`: arguments, lines of files, rows of tables, standard input."""

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.errors import GlassformerError

if TYPE_CHECKING:
    from glassformer.runs.run import Run

Placed = tuple[str, Any]  # location of an input ("" on the command line), and the input

AT_ONCE = 1 << 18  # bytes read from standard input before answering
MOST_BYTES = 1 << 24


def given_inputs(inputs: Iterable[str], run: "Run") -> Iterator[Iterable[Placed]]:
    """The inputs on the command line; those of a file together."""
    for number, given in enumerate(inputs, start=1):
        if given.startswith("@") and given != "@":
            yield _from_file(Path(given[1:]), run)
        else:
            parsed = run.predictor.parse(_unicode(given, f"input {number}"))
            refuse_file_name(given, parsed)
            yield [("", parsed)]


def refuse_file_name(given: str, parsed: Any) -> None:
    """Refuse a name where most likely the lines of that file are meant: a text, or a table."""
    from glassformer.data.sources.formats import is_table

    if isinstance(parsed, str) and _is_file(given):
        raise GlassformerError(
            f"{given} is a file, but the inputs are texts; did you mean @{given}? A text that is "
            f"also the name of a file can be sent through standard input"
        )
    if _is_file(given) and is_table(Path(given)):
        raise GlassformerError(f"{given} is a table; did you mean @{given}?")


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # a text is often too long for a name
        return False


def _unicode(text: str, name: str) -> str:
    """The text; refused if it holds bytes that are not UTF-8."""
    if text.isascii() or text.encode(errors="ignore").decode() == text:
        return text
    raise GlassformerError(f"{name} is not UTF-8; send it as UTF-8, or as a file")


def _from_file(path: Path, run: "Run") -> Iterator[Placed]:
    """The lines of a text file, blank ones included, or the rows of a table or folder."""
    from glassformer.data.sources.decoding import lines
    from glassformer.data.sources.formats import is_table
    from glassformer.runs.rows import table_rows

    config = run.config.data
    if not path.exists():
        raise GlassformerError(
            f"{path}: not found; check the path after @, or send an input that starts with @ "
            f"through standard input"
        )
    if path.is_dir() or is_table(path):
        rows, same = tee(table_rows(path, run.folder, config, run.schema))
        yield from zip((row.where for row in same), run.inputs_of(rows), strict=False)
        return
    for number, line in enumerate(lines(path, config.encoding, newline="\n"), start=1):
        yield _parsed(run, f"{path} line {number}", line.rstrip("\r\n"))


def from_stdin(run: "Run") -> Iterator[Iterable[Placed]]:
    """Complete lines as they arrive, so that a slow pipe is answered without delay."""
    handle, name = sys.stdin.fileno(), "standard input"
    rest, number = b"", 0
    while piece := os.read(handle, AT_ONCE):
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield (_decoded(run, line, name, n) for n, line in enumerate(lines, number + 1))
            number += len(lines)
        if len(rest) > MOST_BYTES:
            raise GlassformerError(
                f"{name} line {number + 1}: longer than {MOST_BYTES:,} bytes; split it into "
                f"several lines"
            )
    if rest:
        yield [_decoded(run, rest, name, number + 1)]


def _decoded(run: "Run", line: bytes, name: str, number: int) -> Placed:
    """A decoded line with its location; a byte order mark on the first line is dropped."""
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise GlassformerError(
            f"{name} line {number}: not UTF-8 (byte {line[error.start]:#04x}); save it as UTF-8"
        ) from None
    return _parsed(run, f"{name} line {number}", text.removesuffix("\r"))


def _parsed(run: "Run", where: str, text: str) -> Placed:
    """Parse one line; an error names the line."""
    try:
        return where, run.predictor.parse(text)
    except GlassformerError as error:
        raise GlassformerError(f"{where}: {error}") from None
