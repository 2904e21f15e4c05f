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
            yield [("", run.predictor.parse(_unicode(given, f"input {number}")))]


def typed_line() -> str:
    """The next typed line; unlike `input`, it does not stop at a zero byte."""
    line = sys.stdin.buffer.readline()
    if not line:
        raise EOFError
    try:
        return line.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise GlassformerError("this line is not UTF-8; set the terminal to UTF-8") from None


def _unicode(text: str, name: str) -> str:
    """The text; refused if it holds bytes that are not UTF-8."""
    if text.isascii() or text.encode(errors="ignore").decode() == text:
        return text
    raise GlassformerError(f"{name} is not UTF-8; send it as UTF-8, or as a file")


def _from_file(path: Path, run: "Run") -> Iterator[Placed]:
    """The lines of a text file, blank ones included, or the rows of a table or folder."""
    from glassformer.data.ingest import rows_of
    from glassformer.data.sources.decoding import lines
    from glassformer.data.sources.formats import is_table

    config = run.config.data
    if not path.exists():
        raise GlassformerError(
            f"{path}: not found; check the path after @, or send an input that starts with @ "
            f"through standard input"
        )
    if path.is_dir() or is_table(path):
        rows, same = tee(rows_of(str(path), config, run.schema))
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
