"""Rows given in Python: dicts or tuples in a list, a DataFrame of pandas or polars, an Arrow table.

None of these libraries is imported: a table is recognised by its methods. A tuple has its values in
the order of the job's roles: a text and its label, a source and its target.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike
from typing import Any

from glassformer.data.columns import Role
from glassformer.data.rows import InMemory, Row, row_of
from glassformer.errors import GlassformerError

MISSING = ("NAType", "NaTType")  # what pandas calls a value that is not there
PLAIN = (str, bytes, bool, int, float, type(None))


def sources_of(given: Iterable[Any], of_what: str = "") -> tuple[str, ...]:
    """Names of sources: paths as they are, and rows under a name of their own.

    Args:
        given: Paths, tables, lists of rows, or lists of these.
        of_what: What the data are for, to tell names apart, as in `the validation list`.
    """
    tables = [as_table(one) for some in given for one in flattened(some)]
    held = [table for table in tables if not isinstance(table, str)]
    numbers = iter(range(1, len(held) + 1))

    def name_of(table: Any) -> str:
        if isinstance(table, str):
            return table
        name = f"{of_what} {noun_of(table)}".strip()
        return InMemory(f"{name} {next(numbers)}" if len(held) > 1 else f"the {name}", table)

    return tuple(map(name_of, tables))


def flattened(given: Any) -> list[Any]:
    """The sources in one argument: several if it is a list of paths, tables or lists of rows."""
    if isinstance(given, str | PathLike | Mapping) or is_table(given):
        return [given]
    if not isinstance(given, Iterable):
        return [given]
    items = given if isinstance(given, Sequence) else list(given)
    several = items and all(
        isinstance(item, str | PathLike) or is_table(item) or has_rows(item) for item in items
    )
    return list(items) if several else [items]


def has_rows(value: Any) -> bool:
    """Whether this is a list of rows."""
    return isinstance(value, list | tuple) and bool(value) and is_row(value[0])


def is_row(value: Any) -> bool:
    """Whether this is a row: a dict, or a tuple or list of values."""
    if isinstance(value, Mapping):
        return True
    return isinstance(value, tuple | list) and not any(is_row(item) for item in value[:1])


def is_table(value: Any) -> bool:
    """Whether this is a table of a library."""
    return any(hasattr(value, name) for name in ("iter_rows", "to_batches", "to_dict"))


def is_table_of_rows(value: Any) -> bool:
    """Whether this is a DataFrame, an Arrow table or a list of dicts, rather than one column."""
    if is_table(value):
        return hasattr(value, "columns")
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def noun_of(table: Any) -> str:
    """What messages call a source."""
    if not is_table(table):
        return "list"
    return "table" if hasattr(table, "to_batches") else "DataFrame"


def as_table(given: Any) -> Any:
    """A path as text, a table, or a list of rows; anything else is refused."""
    if isinstance(given, str | PathLike):
        return given if isinstance(given, InMemory) else str(given)
    if is_table(given) and not hasattr(given, "to_frame"):  # as a column has
        return given
    rows_may_follow = isinstance(given, Iterable) and not hasattr(given, "to_frame")
    if rows_may_follow and not isinstance(given, Mapping | bytes):
        rows = given if isinstance(given, Sequence) else list(given)
        if not rows:
            raise GlassformerError("a list without rows was given; give at least one")
        for number, row in enumerate(rows, 1):
            if not is_row(row):
                raise GlassformerError(
                    f"row {number} of the list: neither a dict nor a tuple, but {row!r:.60}; give "
                    f"rows such as {{'text': ..., 'label': ...}}"
                )
        return rows
    raise GlassformerError(
        f"data must be a path, a list of dicts or tuples, a DataFrame or an Arrow table, got "
        f"{type(given).__name__}"
    )


def read_held(name: InMemory, roles: Sequence[Role]) -> Iterator[Row]:
    """The rows that a name holds."""
    rows = dicts_of(name.held) if is_table(name.held) else name.held
    names = [role.name for role in roles]
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            if len(row) > len(names):
                raise GlassformerError(
                    f"row {number} of {name}: {len(row)} values, but a row has at most "
                    f"{len(names)} ({', '.join(names)}); give dicts to name the columns"
                )
            row = dict(zip(names, row, strict=False))
        yield row_of({column: plain(value) for column, value in row.items()}, name, number)


def dicts_of(table: Any) -> Iterable[Mapping[Any, Any]]:
    """The rows of a DataFrame or an Arrow table."""
    if hasattr(table, "iter_rows"):  # polars
        return table.iter_rows(named=True)
    if hasattr(table, "to_batches"):  # Arrow
        return chain.from_iterable(batch.to_pylist() for batch in table.to_batches())
    return table.to_dict(orient="records")


def is_missing(value: Any) -> bool:
    """Whether a value is not there: None, NaN, or what pandas has for them.

    >>> [is_missing(value) for value in (None, float("nan"), "", 0.0)]
    [True, True, False, False]
    """
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in MISSING


def plain(value: Any) -> Any:
    """A value of a library's own type as one of Python's."""
    if isinstance(value, PLAIN) and type(value).__module__ != "numpy":
        return value
    if type(value).__name__ in MISSING:
        return None
    if isinstance(value, PathLike):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value
