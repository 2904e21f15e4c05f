"""The training rows nearest to an input, as a block of a picture: a small table."""

from collections.abc import Sequence
from typing import Any

from glassformer.explaining.parts import Neighbour
from glassformer.explaining.views.blocks import MARGIN, POINTS, WIDTH, Block, Fonts
from glassformer.explaining.views.pictures import QUIET
from glassformer.explaining.views.wording import rounded

NEAREST = "Nearest training rows"
SIZE, LINE, APART = 9.0, 1.7, 0.25  # points of a letter; of a line in letters; inches of a gap
LONGEST = 2.0  # inches of a target, and of where a row comes from


def neighbours_block(neighbours: Sequence[Neighbour], fonts: Fonts) -> Block:
    """A line for each: how similar, its target, its text, and where it comes from."""
    targets = [fonts.fitted(one.target, SIZE, LONGEST) for one in neighbours]
    places = [fonts.fitted(short_place(one), SIZE, LONGEST) for one in neighbours]
    similar = [rounded(max(one.similarity, 0.0), 2) for one in neighbours]
    first, second, last = (
        max(fonts.width(text, SIZE) for text in texts) for texts in (similar, targets, places)
    )
    inside = WIDTH - 2 * MARGIN
    starts = (0.0, first + APART, first + second + 2 * APART, inside - last)
    room = starts[3] - starts[2] - APART
    texts = [fonts.fitted(one.text, SIZE, room) for one in neighbours]
    tall = SIZE * LINE / POINTS

    def draw(axes: Any) -> None:
        for number, row in enumerate(zip(similar, targets, texts, places, strict=True)):
            y = tall * (len(neighbours) - number - 0.5)
            for column, (x, text) in enumerate(zip(starts, row, strict=True)):
                more = {"color": QUIET} if column in (0, 3) else {}
                axes.text(x, y, text, **fonts.style(SIZE, va="center", **more))

    return Block(height=tall * len(neighbours), draw=draw)


def short_place(neighbour: Neighbour) -> str:
    """Where a row comes from, without folders."""
    return neighbour.where.rpartition("/")[2]
