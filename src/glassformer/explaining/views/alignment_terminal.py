"""An alignment in the terminal: one line per target word, one column per source word.

         早上 好
Good     ···· ██
morning  ████ ··
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from glassformer.explaining.alignment import Alignment
from glassformer.explaining.views.heatmap import HEAT, SHADES
from glassformer.terminal import printable

GAP = 1  # between two columns
LONGEST = 16  # terminal cells that a word may take


@dataclass(frozen=True, slots=True)
class AlignmentTable:
    """An alignment that rich can draw, as wide as its console."""

    alignment: Alignment

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Text]:
        yield alignment_text(self.alignment, console.width)


def alignment_text(alignment: Alignment, width: int = 80) -> Text:
    """The table; columns that do not fit the width continue below.

    Columns are as wide as their words in the terminal, where a Chinese character takes two cells.
    """
    source, target = (
        [fitted(word) for word in side] for side in (alignment.source, alignment.target)
    )
    margin = max(map(cell_len, target), default=0) + GAP
    parts = []
    for start, stop in panels([cell_len(word) for word in source], width - margin):
        lines = [Text(" " * (margin + GAP)) + Text(" ".join(source[start:stop]), "bold")]
        for word, strengths in zip(target, alignment.strengths.tolist(), strict=True):
            line = Text().append(set_cell_size(word, margin), "bold")
            for name, strength in zip(source[start:stop], strengths[start:stop], strict=True):
                level = round(strength * (len(SHADES) - 1))
                line.append(" " * GAP).append(SHADES[level] * cell_len(name), HEAT[level])
            lines.append(line)
        parts.append(Text("\n").join(lines))
    return Text("\n\n").join(parts)


def fitted(word: str) -> str:
    """A word without control characters, truncated if it is very long."""
    word = printable(word)
    return word if cell_len(word) <= LONGEST else set_cell_size(word, LONGEST - 1).rstrip() + "…"


def panels(widths: Sequence[int], available: int) -> Iterator[tuple[int, int]]:
    """Ranges of columns that fit the width; each has at least one column.

    >>> list(panels([4, 2, 2, 9], available=11))
    [(0, 3), (3, 4)]
    """
    start, used = 0, 0
    for column, width in enumerate(widths):
        if used + width + GAP > available and column > start:
            yield start, column
            start, used = column, 0
        used += width + GAP
    if widths:
        yield start, len(widths)
