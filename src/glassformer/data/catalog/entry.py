"""What the catalog knows of a named set: what it is, whose it is, its rows and its files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from glassformer.data.catalog.storage import Storage
from glassformer.data.rows import Row


@dataclass(frozen=True, slots=True)
class Entry:
    """A named set.

    Args:
        name: What a person types.
        what: One sentence.
        licence: Under which terms it may be used.
        source: The page of those who made it.
        rows: Reads or makes the rows, anew at every call.
        group: The column of what must stay in one split, or None.
        storage: Where its files lie and come from; None for a set that is on board.
    """

    name: str
    what: str
    licence: str
    source: str
    rows: Callable[[], Iterator[Row]]
    group: str | None = None
    storage: Storage | None = None
