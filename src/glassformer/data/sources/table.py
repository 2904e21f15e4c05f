"""Text tables: CSV and its kin, parsed strictly, so that a broken row is reported where it breaks.

Three properties are detected from the head of the file. The *delimiter* is the one of , ; tab |
that gives the most rows the width of the first (.tsv and .tab: always tab). *Quotes* count, except
in a tab-separated file whose head never needs them, since such files often hold bare quotes. The
first row is a *header* unless it looks like data:

    - one of its cells is repeated below in the same column: data
    - otherwise, a cell is a known name ("text", "label", "id", "first_name"): header
    - otherwise, a cell is a number, or longer than 60 characters, or there is only one column: data
    - otherwise, a cell reads like those below it: like half of them it ends as a sentence does, or
      it has two or more words that all occur below: data
    - otherwise: header

Without a header the columns are named "1", "2" and so on; so is a column whose header is empty.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from glassformer.data.columns import is_known_name
from glassformer.data.rows import LONGEST_FIELD, Row, column_name, listed
from glassformer.data.sources.decoding import lines
from glassformer.data.sources.files import suffix_of
from glassformer.errors import GlassformerError

HEAD = 1 << 16  # characters used for detection
LONGEST_NAME = 60
ENDS = tuple(".!?。！？…")  # of sentences
TOO_LARGE = "field larger than"  # as the csv module has it
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def read_table(path: Path, encoding: str | None) -> Iterator[Row]:
    """The rows of a table, each as wide as the first."""
    # The limit belongs to the process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    stream = lines(path, encoding)
    head = list(_head(stream))
    sample = "".join(head)[:HEAD]
    delimiter = "\t" if suffix_of(path) in (".tsv", ".tab") else _delimiter(sample)
    quoting = csv.QUOTE_MINIMAL if _has_quotes(sample, delimiter) else csv.QUOTE_NONE
    first, *others = _cells(sample, delimiter, quoting) or [[]]
    header = has_header(first, others)
    columns: list[str] = []
    number = 0
    for number, line, row in _rows(path, chain(head, stream), delimiter, quoting, header):
        if not columns:
            columns = _names(path, row) if header else [str(n + 1) for n in range(len(row))]
            if header:
                continue
        if len(row) != len(columns):
            raise _wrong_width(_where(path, number, line), row, columns, delimiter)
        yield Row(dict(zip(columns, row, strict=True)), str(path), number, line)
    if header and number == 0:
        raise GlassformerError(
            f"{path}: a header ({listed(columns)}) but no rows below it; "
            f"give a table with at least one row"
        )


def has_header(first: list[str], others: list[list[str]]) -> bool:
    """Whether the first row is a header; the rule is in the docstring of this file."""
    below = [row for row in others if row != first]  # concatenated files repeat their header
    for column, cell in enumerate(first):
        if cell and any(column < len(row) and row[column] == cell for row in below):
            return False
    if any(is_known_name(cell) for cell in first):
        return True
    if any(_is_number(cell) or len(cell) > LONGEST_NAME for cell in first):
        return False
    return len(first) > 1 and not any(
        _reads_like(cell, [row[column] for row in below if column < len(row)])
        for column, cell in enumerate(first)
    )


def _rows(
    path: Path, stream: Iterator[str], delimiter: str, quoting: int, header: bool
) -> Iterator[tuple[int, int, list[str]]]:
    """Every row: its number, 0 for a header, its first line, and its cells.

    A blank line is no row; between those of a single column, it is an empty cell.
    """
    reader = csv.reader(stream, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
    unlimited = csv.field_size_limit() > LONGEST_FIELD  # by others, in this process
    number, width, blank = 0 if header else 1, 0, list[int]()
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
            if row and unlimited and max(map(len, row)) > LONGEST_FIELD:
                raise csv.Error(TOO_LARGE)
        except csv.Error as error:
            raise _broken(_where(path, number, line), reader.line_num, error) from None
        if row is None:
            return
        if not row:
            blank.append(line)
            continue
        cells = [([""], at) for at in blank] if width == 1 else []
        for given, at in [*cells, (row, line)]:
            yield number, at, given
            number += 1
        width, blank = width or len(row), []


def _where(path: Path, number: int, line: int) -> str:
    return f"{path} {f'row {number}' if number else 'the header'} (line {line})"


def _wrong_width(
    where: str, row: list[str], columns: list[str], delimiter: str
) -> GlassformerError:
    """The error for a row with more or fewer cells than there are columns."""
    quote = f"quote a cell that holds a {DELIMITERS[delimiter]}"
    return GlassformerError(
        f"{where}: {len(row)} {'cell' if len(row) == 1 else 'cells'} where the table has "
        f"{len(columns)} columns ({listed(columns)}); "
        f"{quote if len(row) > len(columns) else 'add the missing cells'}"
    )


def _broken(where: str, line: int, error: csv.Error) -> GlassformerError:
    """The error for a row that cannot be parsed up to a line."""
    if TOO_LARGE in str(error):
        return GlassformerError(
            f"{where}: more than {LONGEST_FIELD:,} characters in one field; look for a quote "
            f'(") that is opened there and not closed'
        )
    return GlassformerError(
        f"{where}: the row cannot be parsed up to line {line} ({error}); close every "
        f'opening quote, and double a quote inside a cell ("")'
    )


def _head(stream: Iterator[str]) -> Iterator[str]:
    size = 0
    for line in stream:
        yield line
        size += len(line)
        if size > HEAD:
            return


def _cells(sample: str, delimiter: str, quoting: int = csv.QUOTE_MINIMAL) -> list[list[str]]:
    """The complete rows in a sample, parsed leniently."""
    rows = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, quoting=quoting)  # type: ignore[arg-type]
    found = [row for row in rows if row]
    return found[:-1] if len(sample) == HEAD and len(found) > 1 else found


def _delimiter(sample: str) -> str:
    """The delimiter that gives the most rows the width of the first; of ties, the wider."""

    def fit(delimiter: str) -> tuple[float, int]:
        widths = [len(row) for row in _cells(sample, delimiter)] or [1]
        return (widths.count(widths[0]) / len(widths) if widths[0] > 1 else 0.0, widths[0])

    return max(DELIMITERS, key=fit)


def _has_quotes(sample: str, delimiter: str) -> bool:
    """Whether quotes delimit cells: in tab-separated text, only if the head shows it.

    Writers quote every cell, or those with a quote (doubling it), a tab or a line end; the last
    two, read without quotes, give rows of different widths.
    """
    if delimiter != "\t":
        return True
    bare = _cells(sample, delimiter, csv.QUOTE_NONE) or [[]]
    opened = [cell for row in bare for cell in row if cell.startswith('"')]
    if len({len(row) for row in bare}) > 1:
        return bool(opened)
    return all(cell in opened for cell in bare[0]) or any('""' in cell[1:-1] for cell in opened)


def _names(path: Path, header: list[str]) -> list[str]:
    names = [column_name(cell) or str(n + 1) for n, cell in enumerate(header)]
    for name, count in Counter(names).items():
        if count > 1:
            raise GlassformerError(
                f"{path}: two columns are named {name!r} in the header ({listed(names)}); "
                f"rename one of them"
            )
    return names


def _reads_like(cell: str, below: list[str]) -> bool:
    """Whether a cell reads like those below it, rather than like their name."""
    ending = sum(other.rstrip().endswith(ENDS) for other in below)
    if cell.rstrip().endswith(ENDS) and 2 * ending >= len(below) > 0:
        return True
    words = cell.split()
    return len(words) > 1 and {*words} <= {word for other in below for word in other.split()}


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"\s*[-+]?\d+([.,:/-]\d+)*%?\s*", cell) is not None
