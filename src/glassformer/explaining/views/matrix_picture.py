"""Numbers between two rows of words, as a block of a picture: a square for each pair.

Columns of a script that runs from right to left run so, too, with the names of the rows to their
right. Below are the scale of the colours, and what was left out of a large matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from glassformer.explaining.views.blocks import MARGIN, POINTS, QUIET, WIDTH, Block, Fonts
from glassformer.explaining.views.pictures import AGAINST, AMOUNT, FOR
from glassformer.explaining.views.wording import amount, is_east_asian, percent, runs_left, visible

LARGEST, SMALLEST = 0.3, 0.1  # inches of a square
MOST = 80  # words on either side
SIZE, SMALL = 9.0, 8.0  # points
LONGEST = 1.6  # inches of a label
PAD, APART = 0.06, 0.25  # inches between squares and their names, and what is said beside them
SCALE = (1.3, 0.1, 0.36)  # inches: width and height of the scale, and the room that it takes

Matrix = Float[np.ndarray, "down across"]
HUES = tuple(
    np.array([int(hue[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    for hue in (FOR, AGAINST, AMOUNT)
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """Where a matrix lies, in inches.

    Attributes:
        side: Of a square.
        names: The width of the names of the rows, which are to the right of columns that run left.
        above: The height of the names of the columns.
    """

    side: float
    wide: float
    tall: float
    names: float
    above: float
    leftward: bool

    @property
    def start(self) -> float:
        """The left edge of the squares."""
        return 0.0 if self.leftward else self.names

    def column(self, number: int) -> float:
        """The middle of a column."""
        at = (number + 0.5) * self.side
        return self.start + (self.wide - at if self.leftward else at)

    def row(self, number: int) -> float:
        """The middle of a row."""
        return self.tall - (number + 0.5) * self.side


def matrix_block(
    values: Matrix,
    down: Sequence[str],
    across: Sequence[str],
    fonts: Fonts,
    *,
    ends: tuple[str, str],
    signed: bool = False,
    beside: Sequence[Sequence[str]] = (),
) -> Block:
    """Squares, the darker the larger.

    Args:
        ends: What the ends of the scale of colours stand for.
        signed: Whether numbers below zero have a colour of their own.
        beside: Titles of columns to the right, and what they say of each row.
    """
    values, beside = np.asarray(values[:MOST, :MOST]), beside[: MOST + 1]
    names = [[visible(name) for name in side[:MOST]] for side in (down, across)]
    frame = frame_of(names, fonts)
    size = min(SIZE, frame.side * POINTS * 0.8)
    widths = [
        APART + max(fonts.width(text, SMALL) for text in column)
        for column in zip(*beside, strict=True)
    ]
    large = max(len(down), len(across)) > MOST

    def draw(axes: Any) -> None:
        axes.set(ylim=(-SCALE[2], frame.tall + frame.above))
        _draw_squares(axes, painted(values, signed=signed), frame)
        _draw_names(axes, names, frame, fonts, size)
        for number, row in enumerate(beside, start=-1):  # the titles are above the squares
            style = fonts.style(min(SMALL, size), color=QUIET, va="center")
            for column, text in enumerate(row):
                x = frame.names + frame.wide + APART + sum(widths[:column])
                axes.text(x, frame.row(number), text, **style)
        _draw_scale(axes, frame.start, ends, fonts, signed=signed, large=large)

    scale = frame.start + SCALE[0] + 0.2 + sum(fonts.width(end, SMALL) for end in ends)
    return Block(
        height=frame.tall + frame.above + SCALE[2],
        draw=draw,
        width=max(scale, frame.names + frame.wide + sum(widths)),
    )


def influence_ends(values: Matrix, *, signed: bool) -> tuple[str, str]:
    """What the ends of a scale of influence stand for."""
    most = amount(float(np.abs(values).max(initial=0.0)))
    return (f"against −{most}", f"+{most} for") if signed else ("0", most)


def weight_ends(values: Matrix) -> tuple[str, str]:
    """What the ends of a scale of attention stand for."""
    return "0 %", percent(float(values.max(initial=0.0)))


def painted(values: Matrix, *, signed: bool = True) -> Float[np.ndarray, "down across 3"]:
    """Colours on white, full for the largest number: blue and orange, or green without a sign."""
    most = max(float(np.abs(values).max(initial=0.0)), 1e-12)
    share = np.abs(values)[..., None] / most
    towards, against, amounts = HUES
    hue = np.where(values[..., None] >= 0, towards, against) if signed else amounts
    return 1 - share * (1 - hue)


def frame_of(names: Sequence[Sequence[str]], fonts: Fonts) -> Frame:
    """Where a matrix with these names of rows and columns lies."""
    down, across = names
    left, above = (
        min(LONGEST, max((fonts.width(name, SIZE) for name in side), default=0)) + 0.15
        for side in names
    )
    if all(map(is_east_asian, across)):  # which are written downwards
        above = max(map(len, across), default=0) * 1.3 * SIZE / POINTS + 0.1
    side = min(LARGEST, max(SMALLEST, (WIDTH - 2 * MARGIN - left) / max(1, len(across))))
    return Frame(
        side=side,
        wide=side * len(across),
        tall=side * len(down),
        names=left,
        above=above,
        leftward=runs_left("".join(across)),
    )


def _draw_squares(axes: Any, colours: Float[np.ndarray, "down across 3"], frame: Frame) -> None:
    left, right = frame.start, frame.start + frame.wide
    if colours.size:
        turned = colours[:, ::-1] if frame.leftward else colours
        limits = axes.get_xlim(), axes.get_ylim()
        axes.imshow(
            turned, extent=(left, right, 0, frame.tall), aspect="auto", interpolation="nearest",
            zorder=0,
        )  # fmt: skip
        axes.set(xlim=limits[0], ylim=limits[1])
    edge = [left, right, right, left, left], [0, 0, frame.tall, frame.tall, 0]
    axes.plot(*edge, color="#cccccc", linewidth=0.6, clip_on=False)


def _draw_names(
    axes: Any, names: Sequence[Sequence[str]], frame: Frame, fonts: Fonts, size: float
) -> None:
    down, across = names
    x = frame.wide + PAD if frame.leftward else frame.names - PAD
    for number, name in enumerate(down):
        style = fonts.style(size, ha="left" if frame.leftward else "right", va="center")
        axes.text(x, frame.row(number), name, clip_on=True, **style)
    for number, name in enumerate(across):
        upright = is_east_asian(name)
        style = fonts.style(size, rotation=0 if upright else 90, ha="center", va="bottom")
        shown = "\n".join(name) if upright else name
        axes.text(frame.column(number), frame.tall + PAD, shown, clip_on=True, **style)


def _draw_scale(
    axes: Any, x: float, ends: tuple[str, str], fonts: Fonts, *, signed: bool, large: bool
) -> None:
    wide, tall, room = SCALE
    middle = -room + tall / 2 + 0.04
    style = fonts.style(SMALL, color=QUIET, va="center")
    axes.text(x, middle, ends[0], **style)
    left = x + fonts.width(ends[0], SMALL) + 0.1
    colours = painted(np.linspace(-1 if signed else 0, 1, 65)[None], signed=signed)
    extent = (left, left + wide, middle - tall / 2, middle + tall / 2)
    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(colours, extent=extent, aspect="auto", interpolation="bilinear")
    axes.set(xlim=limits[0], ylim=limits[1])
    note = f"   (the first {MOST} words on either side)" if large else ""
    axes.text(left + wide + 0.1, middle, ends[1] + note, **style)
