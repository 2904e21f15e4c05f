"""Blocks: parts of a picture that stand below one another, each as tall as it needs to be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from glassformer.explaining.views.pictures import INK, families_for, save_picture
from glassformer.terminal import printable

WIDTH, MARGIN, GAP = 9.0, 0.4, 0.16  # inches: of a picture, around it, between blocks
QUIET = "#666b70"
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


def text_block(text: str, fonts: Fonts, *, size: float = 9.0, **more: Any) -> Block:
    """A paragraph."""
    lines = fonts.wrapped(text, size, WIDTH - 2 * MARGIN)
    tall = size * 1.45 / POINTS

    def draw(axes: Any) -> None:
        for number, line in enumerate(lines):
            y = tall * (len(lines) - number - 0.5)
            axes.text(0, y, line, va="center", **fonts.style(size, **more))

    return Block(height=tall * len(lines), draw=draw)


def draw_blocks(blocks: Sequence[Block], path: Path) -> None:
    """Draw all blocks, one below the other."""
    width = max(WIDTH, *(block.width + 2 * MARGIN for block in blocks))
    height = sum(block.height for block in blocks) + GAP * (len(blocks) - 1) + 2 * MARGIN
    figure, top = _figure(width, height), height - MARGIN
    inside = width - 2 * MARGIN
    for block in blocks:
        box = (MARGIN / width, (top - block.height) / height, inside / width, block.height / height)
        axes = figure.add_axes(box, xlim=(0, inside), ylim=(0, block.height))
        axes.set_axis_off()
        block.draw(axes)
        top -= block.height + GAP
    save_picture(figure, path)


def _figure(width: float, height: float) -> Any:
    figure = import_module("matplotlib.figure").Figure(figsize=(width, height), facecolor="white")
    import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    return figure
