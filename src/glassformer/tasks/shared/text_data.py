"""The schema of jobs whose samples are texts, and the roles that several jobs share."""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from glassformer.config import DataConfig
from glassformer.data.columns import COLUMN_NAMES, Columns, Role
from glassformer.data.paths import located
from glassformer.data.rows import NoText, Row, as_text
from glassformer.data.samples import Sample
from glassformer.data.schema import Schema
from glassformer.data.splits import content_key
from glassformer.data.text.chinese import simplified

ARRAYS = (".npy", ".npz")  # files that a frontend of one's own reads
SEPARATORS = ("|", ";", ",", "/")  # of several labels in one field
NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)*|[.,]\d+)([eE][-+]?\d+)?")
GRADES = 20  # different numbers; more are amounts
ENOUGH_ROWS = 20  # to tell values from texts
FEW_VALUES = 0.1  # of the rows
LONGER = 2  # times as long on average
FEW = 50  # a label has at most this many values in the first rows, and each is at most this long


def longest_texts(columns: Sequence[str], head: Sequence[Row]) -> str | None:
    """The column with the longest texts; without texts, one that holds lists of numbers.

    Numbers are no texts, nor are single words that recur, such as the names of species.
    """
    texts = [column for column in _texts(columns, head) if not _are_values(column, head)]
    if not texts:
        return next((column for column in columns if _holds_numbers(column, head)), None)
    return max(texts, key=lambda column: sum(len(row[column]) for row in head))


def no_texts(columns: Sequence[str], head: Sequence[Row]) -> str:
    """What to say about a table without texts; empty where some columns may hold texts."""
    if not columns or not all(_are_values(column, head) for column in columns):
        return ""
    return (
        "all of them hold numbers, or single words that recur, and no job learns from tables "
        "without texts"
    )


def amounts_instead(columns: Sequence[str], head: Sequence[Row]) -> str:
    """What to say where labels are missing and a column holds numbers, such as ages or prices.

    Amounts recur; numbers that are all different may be one side of pairs.
    """
    for column in columns:
        filled = [text for row in head if (text := as_text(row.values.get(column)).strip())]
        values = {*filled}
        if GRADES < len(values) < len(filled) and all(map(NUMBER.fullmatch, values)):
            return (
                f"{column!r} holds numbers, and no job predicts amounts: make a few grades of them "
                f"in a column of their own, such as low, medium and high"
            )
    return ""


def fuller_texts(columns: Sequence[str], head: Sequence[Row]) -> str:
    """The first column, or one that is filled in as many rows with texts twice as long."""
    best = columns[0]
    for column in columns[1:]:
        (rows, size), (others, length) = (_filled(one, head) for one in (best, column))
        if column in _texts([column], head) and others >= rows and length >= LONGER * size:
            best = column
    return best


def _filled(column: str, head: Sequence[Row]) -> tuple[int, float]:
    """How many rows have a text in this column, and the mean length of a text there."""
    sizes = [len(value) for row in head if (value := as_text(row.values.get(column)).strip())]
    return len(sizes), sum(sizes) / max(1, len(sizes))


def _are_values(column: str, head: Sequence[Row]) -> bool:
    """Whether a column holds numbers, or single words of which there are few."""
    values = [value for row in head if (value := as_text(row.values.get(column)).strip())]
    if len(head) < ENOUGH_ROWS or not values:
        return False
    if all(map(NUMBER.fullmatch, values)):
        return True
    few = len({*values}) <= len(values) * FEW_VALUES
    return few and not any(len(value.split()) > 1 for value in values)


def repeated_values(columns: Sequence[str], head: Sequence[Row]) -> str | None:
    """A column with lists; otherwise the one with the fewest different values.

    A column with a single value is the last choice; sorted data may start with one. Fields with
    several labels differ more than the labels do.
    """
    for column in columns:
        if list in {type(row.values.get(column)) for row in head}:
            return column
    values = {column: {row[column] for row in head} for column in _texts(columns, head)}
    values = {column: _labels_in(some, len(head)) for column, some in values.items()}
    candidates = [
        column
        for column, some in values.items()
        if len(some) <= _most_labels(len(head)) and max(map(len, some)) <= FEW
    ]
    return min(
        candidates, key=lambda column: (len(values[column]) < 2, len(values[column])), default=None
    )


def _most_labels(rows: int) -> int:
    return max(2, min(FEW, rows // 2))


def _labels_in(fields: set[str], rows: int) -> set[str]:
    """The labels in some fields: these, or their pieces if that makes them few."""
    if _most_labels(rows) < len(fields) and max(map(len, fields)) <= FEW:
        for separator in SEPARATORS:
            pieces = {piece.strip() for field in fields for piece in field.split(separator)}
            if len(pieces) <= _most_labels(rows) and 2 * len(pieces & fields) > len(pieces):
                return pieces
    return fields


def is_numbers(value: str) -> bool:
    """Whether this is a list of lists in the form of JSON, as a sequence of numbers is."""
    return value.startswith("[[")


def _holds_numbers(column: str, head: Sequence[Row]) -> bool:
    values = [row.values.get(column) for row in head]
    return all(type(value) is NoText and is_numbers(value) for value in values)


def _texts(columns: Sequence[str], head: Sequence[Row]) -> list[str]:
    """The columns that contain only texts."""
    return [
        column
        for column in columns
        if not {type(row.values.get(column)) for row in head} & {list, NoText}
    ]


TEXT = Role(
    name="text",
    names=COLUMN_NAMES["text"],
    guess=longest_texts,
    lacking=no_texts,
    prefer=fuller_texts,
)
LABEL = Role(
    name="label",
    names=COLUMN_NAMES["label"],
    several=True,
    answer=True,
    guess=repeated_values,
    lacking=amounts_instead,
)


class TextSchema(Schema):
    """Samples that are texts, except for the answers. By default one text per row."""

    roles: tuple[Role, ...] = (TEXT,)

    def value(self, role: Role, row: Row, columns: Columns) -> Any:
        column = columns[role.name]
        value = row.values.get(column)
        if type(value) is str:  # nearly always
            return located(row, value) if value.endswith(ARRAYS) and not role.answer else value
        if type(value) is NoText and is_numbers(value) and not role.answer:
            return str(value)
        value = row[column]
        if isinstance(value, list) and not role.several:
            return " ".join(value)  # a text given as a list of words
        return value

    def content(self, sample: Sample, config: DataConfig) -> str:
        """The text, normalised in letter case, white space, Unicode form and Chinese script."""
        text = ""
        for role in self.roles:
            if not role.answer and role.name in sample:
                text = f"{text} {content_of(str(sample[role.name]))}"
        return text_key(text, in_simplified=config.tokenizer.simplified)


def content_of(value: str) -> str:
    """A text, or for the name of a file of numbers a digest of these, wherever it lies."""
    if not value.endswith(ARRAYS):
        return value
    try:
        return blake2b(Path(value).read_bytes(), digest_size=16).hexdigest()
    except OSError:  # reading the samples will say so, with the row
        return value


@lru_cache(maxsize=16)  # a row is looked at more than once, and equal rows often stand together
def text_key(text: str, *, in_simplified: bool) -> str:
    """A key that is equal for texts that are the same up to normalisation.

    >>> text_key(" A fine  Film", in_simplified=False)
    'a fine film'
    """
    return content_key(simplified(text) if in_simplified else text)
