"""Words for numbers and values, wherever a person reads them."""

from typing import Any


def counted(count: int, noun: str) -> str:
    """A count with its noun in the right number.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shortened(value: Any, most: int = 30) -> str:
    """A value in quotes, abbreviated."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
