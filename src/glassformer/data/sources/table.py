"""Text tables: CSV and its kin, parsed strictly, so that a broken row is reported where it breaks.

Three properties are detected from the head of the file. The *delimiter* is the one of , ; tab |
that gives the most rows the width of the first (.tsv and .tab: always tab). *Quotes* count, except
in a tab-separated file whose head never needs them, since such files often hold bare quotes. The
first row is a *header* if it was declared to be one, or if it names the columns that were asked
for; otherwise unless it looks like data:

    - a cell is repeated below in the same column: data, unless the others tell that it is a header
      (`message,spam`, where "spam" is a label, too). They do if one of them is a known name, none
      is a number, and they are the majority; if they are half of the cells, one more cell has to be
      a known name, or the known name has to stand above texts of several words
    - otherwise, a cell is a known name ("text", "label", "id", "first_name"): header
    - otherwise, a cell is a number, or longer than 60 characters, or there is only one column: data
    - otherwise, a cell reads like those below it: like half of them it ends as a sentence does, or
      it has two or more words that all occur below: data
    - otherwise: header

Without a header the columns are named "1", "2" and so on; so is a column whose header is empty.

A file whose name does not say what it is counts as a table if all rows of its head are as wide:
with tabs between the cells; with another delimiter, below a header with a known name, or if these
are 20 rows of three cells or more.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from glassformer.data.columns import is_known_name
from glassformer.data.rows import LONGEST_FIELD, Row, column_name, listed, refuse_too_wide
from glassformer.data.sources.decoding import MARKS, lines
from glassformer.data.sources.files import opened, suffix_of
from glassformer.errors import GlassformerError

HEAD = 1 << 16  # characters used for detection
LONGEST_NAME = 60
ENOUGH_ROWS = 20  # as wide as each other, which lines of prose are not
ENDS = tuple(".!?。！？…")  # of sentences
TOO_LARGE = "field larger than"  # as the csv module has it
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """How a table is written.

    Attributes:
        quoting: Whether quotes count, as the csv module has it.
        header: Whether the first row names the columns.
    """

    delimiter: str
    quoting: int
    header: bool


def read_table(
    path: Path,
    encoding: str | None,
    *,
    header: bool | None = None,
    names: Collection[str] = (),
) -> Iterator[Row]:
    """The rows of a table, each as wide as the first.

    Args:
        header: Whether the first row names the columns; None decides by its cells.
        names: Columns that were asked for: a first row that has one is a header.
    """
    # The limit belongs to the process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    stream = lines(path, encoding)
    head = list(_head(stream))
    form = _form(path, "".join(head)[:HEAD], header, names)
    columns: list[str] = []
    number = 0
    for number, line, row in _rows(path, chain(head, stream), form):
        if not columns:
            columns = _names(path, row) if form.header else [str(n + 1) for n in range(len(row))]
            if form.header:
                continue
        if len(row) != len(columns):
            raise _wrong_width(_where(path, number, line), row, columns, form.delimiter)
        yield Row(dict(zip(columns, row, strict=True)), str(path), number, line)
    if form.header and number == 0:
        declared = "" if header is None else ", or read it as a row with --header no"
        raise GlassformerError(
            f"{path}: a header ({listed(columns)}) but no rows below it; "
            f"give a table with at least one row{declared}"
        )


def form_of(
    path: Path, encoding: str | None, *, header: bool | None = None, names: Collection[str] = ()
) -> Form:
    """How a table is written, judged by its head; see `read_table`."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    return _form(path, "".join(_head(lines(path, encoding)))[:HEAD], header, names)


def _form(path: Path, sample: str, header: bool | None, names: Collection[str]) -> Form:
    delimiter = "\t" if suffix_of(path) in (".tsv", ".tab") else _delimiter(sample)
    quoting = csv.QUOTE_MINIMAL if _has_quotes(sample, delimiter) else csv.QUOTE_NONE
    first, *others = _cells(sample, delimiter, quoting) or [[]]
    if header is None and names:
        header = _names_columns(first, names)
    if header is None:
        header = has_header(first, others)
    return Form(delimiter=delimiter, quoting=quoting, header=header)


def looks_like_table(path: Path) -> bool:
    """Whether a file whose name does not say so is a table; see the docstring of this file."""
    with opened(path, binary=True) as stream:
        head = stream.read(HEAD)
    codec = next((codec for mark, codec in MARKS.items() if head.startswith(mark)), "utf-8")
    sample = head.decode(codec, "ignore")
    if "\0" in sample:
        return False
    whole = sample.rpartition("\n")[0] if len(head) == HEAD else sample
    delimiter = _delimiter(whole)
    try:
        quoting = csv.QUOTE_MINIMAL if _has_quotes(whole, delimiter) else csv.QUOTE_NONE
        rows = _cells(whole, delimiter, quoting)
    except csv.Error:
        return False
    if len(rows) < 2 or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return False
    if delimiter == "\t":
        return all(row[0].strip() for row in rows)
    named = any(map(is_known_name, rows[0])) and has_header(rows[0], rows[1:])
    return named or (len(rows) >= ENOUGH_ROWS and len(rows[0]) > 2)


def has_header(first: list[str], others: list[list[str]]) -> bool:
    """Whether the first row is a header; the rule is in the docstring of this file."""
    below = [row for row in others if row != first]  # concatenated files repeat their header
    columns = [{row[at] for row in below if at < len(row)} for at in range(len(first))]
    unique = [at for at, cell in enumerate(first) if cell and cell not in columns[at]]
    known = [at for at, cell in enumerate(first) if is_known_name(cell)]
    named = [at for at in unique if at in known]
    numbers = any(_is_number(cell) or len(cell) > LONGEST_NAME for cell in first)
    cells = sum(map(bool, first))
    if len(unique) < cells:
        most = 2 * len(unique) > cells
        half = 2 * len(unique) == cells and (
            len(known) > 1 or any(_are_texts(columns[at]) for at in named)
        )
        return bool(named) and not numbers and (most or half)
    if known:
        return True
    if numbers:
        return False
    return len(first) > 1 and not any(
        _reads_like(cell, [row[column] for row in below if column < len(row)])
        for column, cell in enumerate(first)
    )


def _names_columns(first: list[str], names: Collection[str]) -> bool | None:
    """Whether a first row has one of some names; that of a column by its place says nothing."""
    cells = {column_name(cell) for cell in first}
    places = {str(place) for place in range(1, len(first) + 1)}
    return True if {*names} & (cells - places) else None


def _are_texts(cells: Collection[str]) -> bool:
    """Whether most of some cells are texts of several words, which a name does not have."""
    filled = [cell for cell in cells if cell.strip()]
    return 2 * sum(len(cell.split()) > 1 for cell in filled) > len(filled)


def _rows(path: Path, stream: Iterator[str], form: Form) -> Iterator[tuple[int, int, list[str]]]:
    """Every row: its number, 0 for a header, its first line, and its cells.

    A blank line is no row; between those of a single column, it is an empty cell.
    """
    reader = csv.reader(stream, delimiter=form.delimiter, quoting=form.quoting, strict=True)  # type: ignore[arg-type]
    unlimited = csv.field_size_limit() > LONGEST_FIELD  # by others, in this process
    number, width, blank = 0 if form.header else 1, 0, list[int]()
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
        if not width:
            refuse_too_wide(path, len(row))
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
