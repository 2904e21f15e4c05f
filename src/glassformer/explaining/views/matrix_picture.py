"""Numbers between two rows of words, as a block of a picture: a square for each pair."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from glassformer.explaining.views.blocks import MARGIN, WIDTH, Block, Fonts
from glassformer.explaining.views.wording import is_east_asian, visible

LARGEST, SMALLEST = 0.3, 0.1  # inches of a square
MOST = 80  # words on either side
SIZE = 9.0
LONGEST = 1.6  # inches of a label
FOR, AGAINST = np.array((0, 114, 178)) / 255, np.array((213, 94, 0)) / 255


def matrix_block(
    values: Float[np.ndarray, "down across"],
    down: Sequence[str],
    across: Sequence[str],
    fonts: Fonts,
) -> Block:
    """Squares, the darker the larger: blue for positive numbers, orange for negative ones."""
    values, down, across = values[:MOST, :MOST], down[:MOST], across[:MOST]
    names = [[visible(name) for name in side] for side in (down, across)]
    left, above = (
        min(LONGEST, max((fonts.width(name, SIZE) for name in side), default=0)) + 0.15
        for side in names
    )
    side = min(LARGEST, max(SMALLEST, (WIDTH - 2 * MARGIN - left) / max(1, len(across))))
    wide, tall = side * len(across), side * len(down)
    size = min(SIZE, side * 72 * 0.8)

    def draw(axes: Any) -> None:
        axes.imshow(
            painted(values), extent=(left, left + wide, 0, tall), aspect="auto",
            interpolation="nearest", zorder=0,
        )  # fmt: skip
        axes.set(xlim=(0, axes.bbox.width / axes.figure.dpi), ylim=(0, tall + above))
        for number, name in enumerate(names[0]):
            y = tall - (number + 0.5) * side
            style = fonts.style(size, ha="right", va="center", clip_on=True)
            axes.text(left - 0.06, y, name, **style)
        for number, name in enumerate(names[1]):
            x = left + (number + 0.5) * side
            upright = is_east_asian(name)
            style = fonts.style(size, rotation=0 if upright else 90, ha="center", va="bottom")
            axes.text(x, tall + 0.06, "\n".join(name) if upright else name, clip_on=True, **style)
        ends = [left, left + wide, left + wide, left, left], [0, 0, tall, tall, 0]
        axes.plot(*ends, color="#cccccc", linewidth=0.6)

    return Block(height=tall + above, draw=draw, width=left + wide)


def painted(values: Float[np.ndarray, "down across"]) -> Float[np.ndarray, "down across 3"]:
    """Colours on white: full for the largest number."""
    most = max(float(np.abs(values).max(initial=0.0)), 1e-12)
    share = np.abs(values)[..., None] / most
    return 1 - share * (1 - np.where(values[..., None] >= 0, FOR, AGAINST))
