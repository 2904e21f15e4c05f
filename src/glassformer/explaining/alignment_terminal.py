"""An alignment in the terminal: a line a word of the answer, a column a word of the source.

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
from glassformer.explaining.terminal import HEAT, SHADES
from glassformer.terminal import printable

GAP = 1  # between two columns
LONGEST = 16  # columns of the screen that a word may take


@dataclass(frozen=True, slots=True)
class AlignmentTable:
    """An alignment that rich can draw, as wide as its console."""

    alignment: Alignment

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Text]:
        yield alignment_text(self.alignment, console.width)


def alignment_text(alignment: Alignment, width: int = 80) -> Text:
    """The picture; where the columns are too many for the width, they go on below.

    Columns are as wide as their words on the screen, where a Chinese character takes two.
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
    """A word without what a terminal would obey, cut where it is very long."""
    word = printable(word)
    return word if cell_len(word) <= LONGEST else set_cell_size(word, LONGEST - 1).rstrip() + "…"


def panels(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """From which column to which, so that each piece fits; one column always does.

    >>> list(panels([4, 2, 2, 9], room=11))
    [(0, 3), (3, 4)]
    """
    start, used = 0, 0
    for column, width in enumerate(widths):
        if used + width + GAP > room and column > start:
            yield start, column
            start, used = column, 0
        used += width + GAP
    if widths:
        yield start, len(widths)
