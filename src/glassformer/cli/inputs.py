"""Inputs of `predict`: arguments, lines of files, rows of tables, standard input."""

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from glassformer.errors import GlassformerError
from glassformer.terminal import print_line

if TYPE_CHECKING:
    from glassformer.runs.run import Run
    from glassformer.tasks.predictor import Prediction


class Placed(NamedTuple):
    """An input and where it comes from.

    Attributes:
        where: Its location; empty on the command line.
        given: The input; None for an empty cell of a table.
        row: The row of the table that it stands in, if it does.
    """

    where: str
    given: Any
    row: Mapping[str, Any] | None = None


AT_ONCE = 1 << 18  # bytes read from standard input before answering
MOST_BYTES = 1 << 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How tables are read.

    Attributes:
        columns: Columns by role, if not those of training.
        header: yes or no: whether the first row names the columns.
        options: Those of the job's predictor.
    """

    columns: str = ""
    header: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def is_table(self, path: Path) -> bool:
        """Whether a file is a table or a folder, whose rows have columns.

        Lines in a .txt are texts, unless something is said of their columns.
        """
        from glassformer.data.sources.files import suffix_of
        from glassformer.data.sources.formats import is_table, read_plain, reader_of

        if not path.exists():
            raise GlassformerError(
                f"{path}: not found; check the path after @, or send an input that starts with @ "
                f"through standard input"
            )
        if path.is_dir() or is_table(path):
            return True
        declared = bool(self.columns or self.header)
        return (declared or suffix_of(path) != ".txt") and reader_of(path) is not read_plain

    def refuse_without_table(self, inputs: Iterable[str]) -> None:
        """Refuse to be told how tables are read where no input is one."""
        given = {"columns": self.columns, "header": self.header}
        named = [Path(one[1:]) for one in inputs if one.startswith("@") and one != "@"]
        for option in (name for name, value in given.items() if value):
            if not any(map(self.is_table, named)):
                raise GlassformerError(
                    f"--{option} is for the rows of a table, given as @FILE; leave it out"
                )


def given_inputs(inputs: Iterable[str], run: "Run", reading: Reading) -> Iterator[Iterable[Placed]]:
    """The inputs on the command line; those of a file together."""
    for number, given in enumerate(inputs, start=1):
        if not given.startswith("@") or given == "@":
            parsed = run.predictor.parse(_unicode(given, f"input {number}"))
            if not is_meant_as_file(given, parsed):
                yield [Placed("", parsed)]
                continue
            print_line(f"glassformer: reading the file {given}, as @{given} does", stderr=True)
            given = f"@{given}"
        if reading.is_table(Path(given[1:])):
            yield _from_table(Path(given[1:]), run, reading)
        else:
            yield _from_lines(Path(given[1:]), run)


def is_meant_as_file(given: str, parsed: Any) -> bool:
    """Whether the rows or lines of a file are meant: it is a table, or the inputs are texts.

    A single word that is also the name of a file may be meant as a text, so it is refused.
    """
    from glassformer.data.sources.formats import is_table

    if not _is_file(given):
        return False
    if isinstance(parsed, str) and not Path(given).suffix:
        raise GlassformerError(
            f"{given} is a file, but the inputs are texts; write @{given} for its lines, or send a "
            f"text that is also the name of a file through standard input"
        )
    return isinstance(parsed, str) or is_table(Path(given))


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


def _from_table(path: Path, run: "Run", reading: Reading) -> Iterator[Placed]:
    """The rows of a table or a folder."""
    how = {"columns": reading.columns, "header": reading.header}
    table = run.table_inputs(str(path), **how, **reading.options)
    is_layout = path.is_dir() and all(role == name for role, name in table.columns.items())
    if table.columns and not table.guessed and not is_layout:  # a guess was said
        print_line(f"glassformer: {table}", stderr=True)
    for row, given in table.pairs:
        yield Placed(row.where, given, row.values)


def _from_lines(path: Path, run: "Run") -> Iterator[Placed]:
    """The lines of a text file, blank ones included, but for a header."""
    from glassformer.data.sources.decoding import lines

    numbered = enumerate(lines(path, run.config.data.encoding, newline="\n"), start=1)
    parsed = (_parsed(run, f"{path} line {n}", line.rstrip("\r\n")) for n, line in numbered)
    return without_header(parsed, run)


def without_header(placed: Iterable[Placed], run: "Run") -> Iterator[Placed]:
    """Lines without the first, if it names the column that the run reads and others follow it."""
    rest = iter(placed)
    first = next(rest, None)
    second = next(rest, None) if first is not None and run.is_column(str(first.given)) else None
    if first is not None and second is None:
        yield first
    elif first is not None and second is not None:
        print_line(
            f"glassformer: {first.where} is {str(first.given)!r}, the name of a column that the "
            f"run reads: taken for a header, not answered",
            stderr=True,
        )
        yield second
    yield from rest


def from_stdin(run: "Run") -> Iterator[Iterable[Placed]]:
    """Complete lines as they arrive, so that a slow pipe is answered without delay."""
    batches = _arriving(run)
    for first in batches:
        lines = iter(first)
        head = next(lines)
        if not run.is_column(str(head.given)):  # else the next line is awaited
            yield chain([head], lines)
            break
        rest = chain(lines, chain.from_iterable(islice(batches, 1)))
        yield without_header(chain([head], rest), run)
        break
    yield from batches


def _arriving(run: "Run") -> Iterator[Iterable[Placed]]:
    """The complete lines of each piece of standard input."""
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
        return Placed(where, run.predictor.parse(text))
    except GlassformerError as error:
        raise GlassformerError(f"{where}: {error}") from None


class ReadAhead:
    """Inputs that are read before they are answered; those that were read are not read again.

    Attributes:
        waiting: Those that are not answered yet.
        failed: Whether the next one could not be read.
    """

    def __init__(self, inputs: Iterable[Placed]) -> None:
        self.inputs, self.failed = iter(inputs), False
        self.waiting: deque[Placed] = deque()

    def __iter__(self) -> Iterator[Any]:
        try:
            for placed in self.inputs:
                self.waiting.append(placed)
                yield placed.given
        except GlassformerError:
            self.failed = True
            raise


def answer_to(run: "Run", options: Mapping[str, Any], placed: Placed) -> "Prediction":
    """The prediction for one input; an error names the input."""
    try:
        return next(run.predict_each([placed.given], **options))
    except GlassformerError as error:
        raise located(placed.where, error) from None


def located(where: str, error: GlassformerError) -> GlassformerError:
    """The error with where its input comes from."""
    return GlassformerError(f"{where}: {error}") if where else error
