"""Text and numbers for a page: escaped, and rounded to useful precision."""

import base64
import math

from glassformer.notebook import escaped
from glassformer.reports.record import Cell, Sound


def number(value: int | float, digits: int = 3) -> str:
    """A number with fixed decimals, fewer for large ones; a dash for NaN.

    >>> number(0.91), number(31234.5), number(float("nan"))
    ('0.910', '31,234', '–')
    """
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    return f"{value:,.{digits if size < 10 else min(digits, 1) if size < 1000 else 0}f}"


def cell(value: Cell) -> str:
    """The content of a table's cell."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Sound):
        return player(value)
    return f"{value:,}" if isinstance(value, int) else number(float(value))


def player(sound: Sound) -> str:
    """A recording to listen to, inside the page."""
    data = base64.b64encode(sound.mp3).decode("ascii")
    return f'<audio controls preload="none" src="data:audio/mpeg;base64,{data}"></audio>'
