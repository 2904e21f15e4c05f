"""Blocks: parts of a picture that stand below one another, each as tall as it needs to be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from glassformer.explaining.views.pictures import (
    DEFAULT,
    INK,
    QUIET as QUIET,
    characters_of,
    families_for,
    font_path,
    save_picture,
)
from glassformer.terminal import printable

WIDTH, MARGIN, GAP = 9.0, 0.4, 0.16  # inches: of a picture, around it, between blocks
APART, WIDEST = 0.6, 13.0  # inches between columns, and of a picture of several
POINTS = 72  # an inch


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A part of a picture.

    Attributes:
        height: In inches.
        draw: Draws into axes in inches, from the lower left.
        width: In inches, where the picture must be wider for it.
    """

    height: float
    draw: Callable[[Any], None]
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Fonts:
    """How texts are set: in fonts that have their characters; and how wide they become."""

    families: Sequence[str]
    figure: Any = field(default_factory=lambda: _figure(1.0, 1.0))

    @classmethod
    def for_texts(cls, *texts: str) -> "Fonts":
        """Fonts that have every character of these texts."""
        return cls(families_for(printable("".join(texts))))

    def narrowed(self, text: str) -> "Fonts":
        """The default font alone, which comes in bold, if it has every character of a text."""
        if {*text} - {" "} <= characters_of(font_path(DEFAULT)):
            return Fonts(self.families[:1], self.figure)
        return self

    def style(self, size: float, **more: Any) -> dict[str, Any]:
        """The arguments of a text; a dollar sign starts no formula."""
        known = {"fontfamily": self.families, "parse_math": False, "fontsize": size, "color": INK}
        if len(self.families) > 1:  # those of the system are registered in one weight
            more.pop("fontweight", None)
        return {**known, **more}

    def width(self, text: str, size: float, **more: Any) -> float:
        """The width of a text in inches."""
        drawn = self.figure.text(0, 0, text, **self.style(size, **more))
        found: float = drawn.get_window_extent(self.figure.canvas.get_renderer()).width
        drawn.remove()
        return found / self.figure.dpi

    def wrapped(self, text: str, size: float, width: float) -> list[str]:
        """A text in lines that fit a width."""
        lines = [""]
        for word in printable(text).split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width(longer, size) > width:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines

    def fitted(self, text: str, size: float, width: float) -> str:
        """The beginning of a text that fits a width."""
        text = " ".join(printable(text).split())
        if self.width(text, size) <= width:
            return text
        fits, cut = 0, len(text)
        while cut - fits > 1:
            middle = (fits + cut) // 2
            if self.width(text[:middle] + "…", size) <= width:
                fits = middle
            else:
                cut = middle
        return text[:fits].rstrip() + "…"


def text_block(text: str, fonts: Fonts, *, size: float = 9.0, **more: Any) -> Block:
    """A paragraph."""
    fonts = fonts.narrowed(text)
    lines = fonts.wrapped(text, size, WIDTH - 2 * MARGIN)
    tall = size * 1.45 / POINTS

    def draw(axes: Any) -> None:
        for number, line in enumerate(lines):
            y = tall * (len(lines) - number - 0.5)
            axes.text(0, y, line, va="center", **fonts.style(size, **more))

    return Block(height=tall * len(lines), draw=draw)


def beside(*columns: Sequence[Block]) -> list[Block]:
    """Columns of blocks next to one another if they fit, else all of them in one column."""
    widths = [max(block.width for block in column) for column in columns]
    heights = [_height(column) for column in columns]
    total = sum(widths) + APART * (len(columns) - 1)
    if total > WIDEST - 2 * MARGIN:
        return [block for column in columns for block in column]

    def draw(axes: Any) -> None:
        figure = axes.figure
        left, bottom = axes.get_position().p0 * figure.get_size_inches()
        for column, width in zip(columns, widths, strict=True):
            _draw_column(figure, column, left, bottom + max(heights), width)
            left += width + APART

    return [Block(height=max(heights), draw=draw, width=total)]


def draw_blocks(blocks: Sequence[Block], path: Path) -> None:
    """Draw all blocks, one below the other."""
    width = max(WIDTH, *(block.width + 2 * MARGIN for block in blocks))
    height = _height(blocks) + 2 * MARGIN
    figure = _figure(width, height)
    _draw_column(figure, blocks, MARGIN, height - MARGIN, width - 2 * MARGIN)
    save_picture(figure, path)


def _height(blocks: Sequence[Block]) -> float:
    return sum(block.height for block in blocks) + GAP * (len(blocks) - 1)


def _draw_column(
    figure: Any, blocks: Sequence[Block], left: float, top: float, width: float
) -> None:
    wide, tall = figure.get_size_inches()
    for block in blocks:
        box = (left / wide, (top - block.height) / tall, width / wide, block.height / tall)
        axes = figure.add_axes(box, xlim=(0, width), ylim=(0, block.height))
        axes.set_axis_off()
        block.draw(axes)
        top -= block.height + GAP


def _figure(width: float, height: float) -> Any:
    figure = import_module("matplotlib.figure").Figure(figsize=(width, height), facecolor="white")
    import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    return figure
