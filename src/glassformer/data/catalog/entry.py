"""A catalog entry: description, licence, rows and files of a named data set."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from glassformer.data.catalog.storage import Storage
from glassformer.data.rows import Row


@dataclass(frozen=True, slots=True)
class Entry:
    """A named set.

    Args:
        name: As typed on the command line.
        what: One sentence.
        licence: The terms of use.
        source: The page of its authors.
        rows: Reads or generates the rows at every call.
        group: The column whose equal values must stay in one split, or None.
        storage: Where its files are stored and downloaded from; None for a built-in set.
    """

    name: str
    what: str
    licence: str
    source: str
    rows: Callable[[], Iterator[Row]]
    group: str | None = None
    storage: Storage | None = None
