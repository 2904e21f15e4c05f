"""Words for numbers and values, wherever a person reads them."""

import math
import re
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


def natural_key(name: str) -> tuple[float, list[tuple[str, int]], str]:
    """What to sort names by, so that numbers stand by their size.

    >>> sorted(["10", "b", "2", "-1", "x10", "x9", "0.5"], key=natural_key)
    ['-1', '0.5', '2', '10', 'b', 'x9', 'x10']
    """
    try:
        number = float(name)
    except ValueError:
        number = math.inf
    pieces = re.split(r"([0-9]+)", name)
    pairs = zip(pieces[::2], [*pieces[1::2], "0"], strict=True)
    number = number if math.isfinite(number) else math.inf
    return number, [(text, int(n)) for text, n in pairs], name
