"""Words and numbers as they may stand in a page: escaped, and no longer than they are worth."""

import html
import math

from glassformer.reports.record import Cell

# XML knows no control characters but tab and line ends, and a page shows none of the others.
CONTROL = dict.fromkeys({*range(32), 127} - {9, 10, 13}, "\N{REPLACEMENT CHARACTER}")


def escaped(text: object) -> str:
    """Text that stays text, between tags and inside quotes.

    >>> escaped('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    known = str(text).encode("utf-8", "replace").decode("utf-8")  # a lone surrogate is no letter
    return html.escape(known.translate(CONTROL))


def number(value: int | float, digits: int = 3) -> str:
    """A number with a fixed number of decimals, fewer for large ones; a dash for none.

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
    return f"{value:,}" if isinstance(value, int) else number(float(value))
