"""Tables as a picture, each with a heading above and sentences below."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from glassformer.explaining.views.blocks import (
    MARGIN,
    POINTS,
    WIDTH,
    Block,
    Fonts,
    draw_blocks,
    text_block,
)
from glassformer.explaining.views.pictures import QUIET, check_picture

HEADING, SIZE, LINE = 11.0, 9.0, 1.5  # points of a heading and of a letter; letters of a line
APART = 0.3  # inches between columns

Cells = Sequence[Sequence[str]]


def draw_tables(tables: Sequence[tuple[str, Cells, Sequence[str]]], path: Path) -> None:
    """Draw tables below one another: a heading, a header and its lines, and sentences."""
    check_picture(path)
    texts = [text for title, lines, more in tables for text in (title, *more, *chain(*lines))]
    fonts, blocks = Fonts.for_texts(*texts), list[Block]()
    for title, lines, sentences in tables:
        blocks.append(text_block(title, fonts, size=HEADING, fontweight="bold"))
        if len(lines) > 1:
            blocks.append(table_block(lines, fonts))
        blocks += [text_block(text, fonts, size=SIZE, color=QUIET) for text in sentences]
    draw_blocks(blocks, path)


def table_block(lines: Cells, fonts: Fonts) -> Block:
    """A header and lines below it; cells that are too wide for the picture are wrapped."""
    widths = [
        max(fonts.width(text, SIZE) for text in column) for column in zip(*lines, strict=True)
    ]
    inside = WIDTH - 2 * MARGIN - APART * (len(widths) - 1)
    even, tall = inside / len(widths), SIZE * LINE / POINTS
    if sum(widths) > inside:  # what narrow columns leave is shared by the wide ones
        wide = [width for width in widths if width > even]
        rest = (inside - sum(width for width in widths if width <= even)) / len(wide)
        widths = [min(width, rest) if width > even else width for width in widths]
    cells = [
        [fonts.wrapped(text, SIZE, width + 0.01) for text, width in zip(line, widths, strict=True)]
        for line in lines
    ]
    heights = [max(map(len, row)) for row in cells]

    def draw(axes: Any) -> None:
        top = float(sum(heights))
        for number, (row, height) in enumerate(zip(cells, heights, strict=True)):
            x = 0.0
            for width, wrapped in zip(widths, row, strict=True):
                style = fonts.style(SIZE, va="center", **({} if number else {"color": QUIET}))
                for at, text in enumerate(wrapped):
                    axes.text(x, (top - at - 0.5) * tall, text, **style)
                x += width + APART
            top -= height

    return Block(height=sum(heights) * tall, draw=draw)
