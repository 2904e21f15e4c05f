"""A row of raw data: text by column, and its location in the file.

Every format gives the same rows. Values are text; numbers become text as a person would write them,
and a list of plain values stays a list (the labels of one text). What is not text, such as a JSON
object, is refused when it is read from the row.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from glassformer.errors import GlassformerError

CONTINUED = "continued"  # a column of texts that are cut off: another row goes on with this one
LONGEST_FIELD = 1_000_000  # characters in one field of a table; a longer one is a broken file
MOST_COLUMNS = 10_000  # of a table; more are not columns that somebody named

NESTED = "an object or a nested list instead of text; write the text itself"
NOT_UTF8 = "bytes that are not UTF-8; write them as text"
HALF_CHARACTER = "half a character (a lone surrogate), replaced by U+FFFD"


class NoText(str):
    """A value that is not text, in text form.

    Attributes:
        fault: What it is, and what to do.
    """

    fault: str

    def __new__(cls, text: str, fault: str) -> "NoText":
        value = super().__new__(cls, text)
        value.fault = fault
        return value


class InMemory(str):
    """The name of rows that were given in Python, such as `the list`, with the rows themselves.

    Attributes:
        held: A list of rows, a DataFrame or an Arrow table.
    """

    held: Any

    def __new__(cls, name: str, held: Any) -> "InMemory":
        found = super().__new__(cls, name)
        found.held = held
        return found


@dataclass(slots=True)  # not frozen: millions of them are made
class Row:
    """One row of a file. `number` counts data rows from 1, without the header.

    A missing column is empty: `row["text"]` is then "". A value that is not text is refused.

    Attributes:
        line: The line of the file where it begins, as an editor counts; 0 if there are no lines.
        losses: What could not be kept of it, such as a second value of a key.
    """

    values: Mapping[str, Any]
    file: str
    number: int
    line: int = 0
    losses: tuple[str, ...] = ()

    def __getitem__(self, column: str) -> Any:
        value = self.values.get(column, "")
        if type(value) is NoText:
            raise GlassformerError(f"{self.where}: column {column!r} holds {value.fault}")
        return value

    @property
    def where(self) -> str:
        """The location, for messages; with the line, unless that is the same number.

        >>> Row({"text": "fine"}, "reviews.csv", 17, 19).where
        'reviews.csv row 17 (line 19)'
        >>> Row({"text": "fine"}, InMemory("the list", []), 3).where
        'row 3 of the list'
        """
        if isinstance(self.file, InMemory):
            return f"row {self.number} of {self.file}"
        line = f" (line {self.line})" if self.line not in (0, self.number) else ""
        return f"{self.file} row {self.number}{line}"


def row_of(values: Mapping[Any, Any], file: str, number: int, line: int = 0) -> Row:
    """A row with all values as text; an overlong field is refused."""
    refuse_too_wide(f"{file} row {number}", len(values))
    texts, lost = dict[str, Any](), False
    for name, value in values.items():
        text = texts[column_name(name)] = as_value(value)
        lost = lost or (text is not value and _lost_half(value, text))
    row = Row(texts, file, number, line, (HALF_CHARACTER,) if lost else ())
    for column, value in row.values.items():
        if len(value) > LONGEST_FIELD and isinstance(value, str):
            raise GlassformerError(
                f"{row.where}, column {column!r}: {len(value):,} characters in one field, the "
                f"limit is {LONGEST_FIELD:,}; split it into several rows, or put each text into a "
                f"file of its own in a folder"
            )
    return row


def refuse_too_wide(where: object, columns: int) -> None:
    """Refuse a table with so many columns that reading it would take hours."""
    if columns > MOST_COLUMNS:
        raise GlassformerError(
            f"{where}: {columns:,} columns, the limit is {MOST_COLUMNS:,}; keep those that hold "
            f"the inputs and the answers"
        )


def column_name(cell: Any) -> str:
    """A column name on one line."""
    return " ".join(as_text(cell).split())


def listed(columns: Collection[str]) -> str:
    """List columns for a message, abbreviated if there are many.

    >>> listed([str(n) for n in range(99)])
    '0, 1, 2, 3, 4, 5, 6, 7, ... (99 in total)'
    """
    shown = ", ".join(column[:60] for column in islice(columns, 8))
    return shown if len(columns) <= 8 else f"{shown}, ... ({len(columns)} in total)"


def as_value(value: Any) -> str | list[str]:
    """A value as text, or as a list of texts if the file has a list of plain values."""
    if isinstance(value, str):
        return as_text(value)
    items = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(item, list | tuple | dict) for item in items):
        return NoText(as_text(value), NESTED)
    if any(isinstance(item, bytes) and not _is_utf8(item) for item in items):
        return NoText("", NOT_UTF8)
    return [as_text(item) for item in items] if items is value else as_text(value)


def as_text(value: Any) -> str:
    """A value as a person would write it.

    None, NaN and bytes that are not UTF-8 are empty; half a surrogate pair, which JSON can express
    but UTF-8 cannot, becomes the replacement character.

    >>> [as_text(value) for value in (3, 3.0, 2.5, True, None, math.nan, {"a": [1]})]
    ['3', '3', '2.5', 'true', '', '', '{"a": [1]}']
    """
    match value:
        case str():
            return value if value.isascii() else _without_surrogates(value)
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return _number(value)
        case bytes():
            return _decoded(value)
        case dict() | list() | tuple():
            return _without_surrogates(json.dumps(value, ensure_ascii=False, default=as_text))
    return str(value)


def _lost_half(value: Any, text: Any) -> bool:
    """Whether half of a surrogate pair was replaced when a value became a text, or several."""
    if isinstance(value, list | tuple) and isinstance(text, list):
        return any(_lost_half(*pair) for pair in zip(value, text, strict=True))
    return isinstance(value, str) and text is not value


def _without_surrogates(text: str) -> str:
    """The text without the halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else str(value)


def _decoded(value: bytes) -> str:
    return value.decode() if _is_utf8(value) else ""


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
