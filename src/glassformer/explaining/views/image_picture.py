"""An image as it was read, and over it what counted for each label and where attention looked."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from glassformer.explaining.parts import Image
from glassformer.explaining.views.blocks import APART, POINTS, Block, Fonts
from glassformer.explaining.views.pictures import AGAINST, AMOUNT, FOR, QUIET

SIDE = 2.1  # inches of the longer side of a panel
CAPTION = 9.0  # points
FAINT = 0.25  # of an image below a map
STRONGEST = 0.85  # opacity of the largest value
BETWEEN = APART / 2

Grid = Float[Tensor, "rows columns"]
Panel = tuple[str, Grid | None, bool]  # a caption, a map over the image, and whether it has a sign


def image_block(image: Image, panels: Sequence[Panel], fonts: Fonts) -> Block:
    """Panels next to one another, each with its caption above."""
    height, width = image.pixels.shape[:2]
    tall, wide = SIDE * height / max(height, width), SIDE * width / max(height, width)
    wide = max(wide, SIDE / 2)
    above = 1.8 * CAPTION / POINTS

    def draw(axes: Any) -> None:
        left = 0.0
        for caption, grid, signed in panels:
            extent = (left, left + wide, 0.0, tall)
            text = fonts.narrowed(caption).fitted(caption, CAPTION, wide + BETWEEN * 0.8)
            style = fonts.style(CAPTION, color=QUIET)
            axes.text(left, tall + above / 2, text, va="center", **style)
            _draw_pixels(axes, image, extent, faint=grid is not None)
            if grid is not None:
                _draw_grid(axes, grid, extent, signed=signed)
            left += wide + BETWEEN
        axes.set_xlim(0, axes.bbox.width / axes.figure.dpi)  # imshow changes them
        axes.set_ylim(0, tall + above)

    total = len(panels) * (wide + BETWEEN) - BETWEEN
    return Block(height=tall + above, draw=draw, width=total)


def _draw_pixels(axes: Any, image: Image, extent: Sequence[float], *, faint: bool) -> None:
    """The image; in light grey where something is drawn over it."""
    pixels = image.pixels.expand(-1, -1, 3).cpu().numpy() / 255
    if faint:
        grey = pixels.mean(-1, keepdims=True).repeat(3, -1)
        pixels = 1 - FAINT * (1 - grey) if grey.mean() > 0.5 else 1 - FAINT * grey
    axes.imshow(pixels, extent=extent, aspect="auto", interpolation="nearest", zorder=1)


def _draw_grid(axes: Any, grid: Grid, extent: Sequence[float], *, signed: bool) -> None:
    """A colour for each patch, the more opaque the larger."""
    to_rgb = import_module("matplotlib.colors").to_rgb
    values = grid.float().cpu().numpy()
    if not signed:
        values = values - values.min()
    shares = np.abs(values) / max(float(np.abs(values).max()), 1e-9)
    plus, minus = (np.array(to_rgb(colour)) for colour in (FOR if signed else AMOUNT, AGAINST))
    colours = np.where(values[..., None] >= 0, plus, minus)
    layer = np.concatenate([colours, STRONGEST * shares[..., None]], axis=-1)
    axes.imshow(layer, extent=extent, aspect="auto", interpolation="nearest", zorder=2)
