"""An alignment as a picture: the words of both sides in two rows, joined by lines.

The darker a line, the larger the weight. It is drawn by matplotlib, an optional dependency; system
fonts are searched for characters that its own font lacks.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from glassformer.explaining.alignment import Alignment
from glassformer.explaining.views.pictures import (
    AMOUNT,
    INK,
    check_picture,
    families_for,
    save_picture,
)
from glassformer.explaining.views.wording import runs_left
from glassformer.terminal import printable

FAINTEST = 0.08  # weaker links are not drawn
INCHES_PER_CELL, HEIGHT, SIZE = 0.14, 2.8, 14  # of a word's letters, of the picture, of the font


def draw_alignment(alignment: Alignment, path: Path) -> None:
    """Draw the source above, the translation below, and the links between them."""
    check_picture(path)
    rows = [[printable(word) for word in side] for side in (alignment.source, alignment.target)]
    families = families_for("".join(word for row in rows for word in row))
    widest = max(centres(row)[1] for row in rows)
    size = (max(3.0, widest * INCHES_PER_CELL), HEIGHT)
    figure = import_module("matplotlib.figure").Figure(figsize=size, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-widest / 2 - 1, widest / 2 + 1), ylim=(-0.45, 1.45))
    axes.set_axis_off()
    draw_sides(axes, replace(alignment, source=tuple(rows[0]), target=tuple(rows[1])), families)
    save_picture(figure, path)


def draw_sides(axes: Any, alignment: Alignment, families: Sequence[str]) -> None:
    """Both rows of words around the middle, right to left where they run so, and the links."""
    sides = []
    for words, height, side in ((alignment.source, 1.1, "bottom"), (alignment.target, -0.1, "top")):
        places, _ = centres(words)
        if runs_left("".join(words)):
            places = [-x for x in places]
        for x, word in zip(places, words, strict=True):
            style = {"ha": "center", "va": side, "color": INK, "fontsize": SIZE}
            # A dollar sign would start a formula.
            axes.text(x, height, word, fontfamily=families, parse_math=False, **style)
        sides.append(places)
    draw_links(axes, alignment, *sides)


def draw_links(
    axes: Any, alignment: Alignment, above: Sequence[float], below: Sequence[float]
) -> None:
    """A line from each target word to each source word, as dark as it is strong."""
    for x, line in zip(below, alignment.strengths.tolist(), strict=True):
        for other, strength in zip(above, line, strict=True):
            if strength >= FAINTEST:
                width = 0.5 + 3 * strength
                axes.plot([x, other], [0, 1], color=AMOUNT, alpha=strength, linewidth=width)


def centres(words: Sequence[str]) -> tuple[list[float], int]:
    """The centre of each word of a row, in cells around the middle, and the width of the row."""
    widths = [cell_len(word) + 3 for word in words]
    at, found = -sum(widths) / 2, []
    for width in widths:
        found.append(at + width / 2)
        at += width
    return found, sum(widths)
