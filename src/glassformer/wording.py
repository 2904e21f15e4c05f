"""Words for numbers and values, wherever a person reads them."""

from typing import Any


def counted(count: int | float, noun: str) -> str:
    """A count with its noun in the right number.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    >>> counted(1.0, "second"), counted(0.5, "second")
    ('1 second', '0.5 seconds')
    """
    number = f"{count:,.10g}" if isinstance(count, float) else f"{count:,}"
    return f"{number} {noun}" if count == 1 else f"{number} {noun}s"


def shortened(value: Any, most: int = 30) -> str:
    """A value in quotes, abbreviated."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
