"""Words as coloured boxes that flow over lines, as a block of a picture.

A text whose first letter runs from right to left is set from the right, with words of other scripts
in their own order. Letters are shaped by matplotlib.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from typing import Any

from glassformer.explaining.views.blocks import MARGIN, POINTS, WIDTH, Block, Fonts
from glassformer.explaining.views.pictures import AGAINST, AMOUNT, FOR
from glassformer.explaining.views.wording import runs_left, visible
from glassformer.terminal import printable

SIZE, LINE, SPACE, PAD = 13.0, 0.36, 0.09, 0.03  # points; inches: a line, a space, around a word
DOUBT, HATCH = "#e69f00", "#c4c4c4"
FAINTEST, STRONGEST = 0.04, 0.6  # shares of influence that are drawn; opacity of the largest


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A word in its place: inches from the left, and the line.

    Attributes:
        word: Its number in the text.
    """

    word: int
    x: float
    line: int
    width: float


def flow(
    pieces: Sequence[str], widths: Sequence[float], available: float, *, leftward: bool = False
) -> list[Box]:
    """Words over lines; a piece that begins or ends with a space is set apart.

    Args:
        widths: Of the pieces, in inches; pieces of spaces alone have no box.
        leftward: Whether lines run from right to left.
    """
    lines: list[list[tuple[int, float, float]]] = [[]]  # (word, space before it, width)
    used, space = 0.0, 0.0
    for word, (piece, width) in enumerate(zip(pieces, widths, strict=True)):
        if piece[:1].isspace():
            space = SPACE
        if piece.strip():
            if lines[-1] and used + space + width > available:
                lines.append([])
            if not lines[-1]:
                used, space = 0.0, 0.0
            lines[-1].append((word, space, width))
            used, space = used + space + width, 0.0
        if "\n" in piece and lines[-1]:
            lines.append([])
        if piece[-1:].isspace():
            space = SPACE
    found = []
    for number, line in enumerate(lines):
        x = 0.0
        for word, before, width in _visual_order(line, pieces) if leftward else line:
            x += before
            at = available - x - width if leftward else x
            found.append(Box(word=word, x=at, line=number, width=width))
            x += width
    return found


def _visual_order(
    line: Sequence[tuple[int, float, float]], pieces: Sequence[str]
) -> list[tuple[int, float, float]]:
    """A line that is set from the right: words of other scripts keep their order from the left."""
    found: list[tuple[int, float, float]] = []
    for leftward, group in groupby(line, key=lambda word: runs_left(pieces[word[0]], usual=True)):
        words = list(group)
        if not leftward:
            spaces = [space for _, space, _ in words]
            turned = [word for word, _, _ in words[::-1]]
            widths = [width for _, _, width in words[::-1]]
            words = list(zip(turned, [spaces[0], *spaces[:0:-1]], widths, strict=True))
        found += words
    return found


def words_block(
    pieces: Sequence[str],
    values: Sequence[float],
    fonts: Fonts,
    *,
    signed: bool = True,
    hatched: Collection[int] = (),
) -> Block:
    """Words coloured by their influence: blue for, orange against, dashed below.

    Without a sign, green says how much.

    Args:
        hatched: Words that were not seen in training.
    """
    most = max(map(abs, values), default=0.0) or 1.0
    paints = [
        None if abs(value) < FAINTEST * most else (hue, abs(value) / most * STRONGEST)
        for value in values
        for hue in [(FOR if value > 0 else AGAINST) if signed else AMOUNT]
    ]
    return _flow_block(pieces, paints, fonts, underlined=signed, hatched=hatched)


def doubts_block(pieces: Sequence[str], probabilities: Sequence[float], fonts: Fonts) -> Block:
    """Written words, the darker the less sure; blanks are words, too, and can be seen."""
    paints = [(DOUBT, (1 - p) * STRONGEST) for p in probabilities]
    seen = [one if one.strip() else visible(one) + "\n" * ("\n" in one) for one in pieces]
    return _flow_block(seen, paints, fonts, underlined=False)


def _flow_block(
    pieces: Sequence[str],
    paints: Sequence[tuple[str, float] | None],
    fonts: Fonts,
    *,
    underlined: bool,
    hatched: Collection[int] = (),
) -> Block:
    patches = import_module("matplotlib.patches")
    shown = [printable(piece.strip()) if piece.strip() else visible(piece) for piece in pieces]
    widths = [fonts.width(text, SIZE) + 2 * PAD for text in shown]
    leftward = runs_left("".join(pieces))
    boxes = flow(pieces, widths, WIDTH - 2 * MARGIN, leftward=leftward)
    lines = 1 + max((box.line for box in boxes), default=0)

    def draw(axes: Any) -> None:
        for box in boxes:
            y, paint = LINE * (lines - 1 - box.line), paints[box.word]
            place, size = (box.x + 0.01, y + 0.05), (box.width - 0.02, LINE - 0.1)
            if box.word in hatched:
                stripes = {"fill": False, "hatch": "/////", "edgecolor": HATCH, "linewidth": 0}
                axes.add_patch(patches.Rectangle(place, *size, **stripes))
            if paint is not None:
                colour, alpha = paint
                shape = patches.FancyBboxPatch(
                    place, *size, boxstyle="round,pad=0,rounding_size=0.04",
                    facecolor=colour, alpha=alpha, linewidth=0,
                )  # fmt: skip
                axes.add_patch(shape)
                if underlined:
                    ends = [box.x + 0.03, box.x + box.width - 0.03]
                    dash = "solid" if colour == FOR else (0, (2, 1.5))
                    axes.plot(ends, [y + 0.04] * 2, color=colour, linewidth=1.2, linestyle=dash)
            style = fonts.style(SIZE, ha="center", va="baseline")
            centre = (box.x + box.width / 2, y + LINE / 2 - 0.35 * SIZE / POINTS)
            axes.text(*centre, shown[box.word], **style)

    return Block(height=LINE * lines, draw=draw)
