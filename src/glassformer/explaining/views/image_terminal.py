"""An image in the terminal: what was read, what of it counted, and where attention looked.

With colours, the image is drawn in half blocks, two pixels a character. Without, shades and marks
tell the same: `##` for what speaks most for the label, `==` for what speaks most against it.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from torch import Tensor

from glassformer.explaining.parts import Image
from glassformer.explaining.views.heatmap import SHADES, shaded

LEVELS = (0.15, 0.4, 0.75)  # shares of the largest influence from which a patch has one mark more
FOR = ("on #9ecbe5", "on #4a9fd0", "on #0072b2")
AGAINST = ("on #f1bf9b", "on #e08544", "on #bf5400")
PLUS, MINUS, NOTHING = (" +", "++", "##"), (" -", "--", "=="), " ·"
WIDEST = 28  # characters of the image, so that eight patches a line fit beside it in 80 columns
APART = 3  # characters between panels


def panels(*shown: tuple[str, Text]) -> RenderableType:
    """Titled drawings next to one another."""
    table = Table.grid(padding=(0, APART))
    for _, drawing in shown:
        table.add_column(min_width=max(len(line) for line in drawing.split()))  # titles may wrap
    table.add_row(*(Text(title, "dim") for title, _ in shown))
    table.add_row(*(drawing for _, drawing in shown))
    return table


def pixels_of(image: Image, *, coloured: bool) -> Text:
    """The image itself, scaled down where it is wide."""
    wide = min(WIDEST if coloured else WIDEST // 2, image.pixels.shape[1])
    tall = max(1, round(image.pixels.shape[0] * wide / image.pixels.shape[1]))
    planes = image.pixels.permute(2, 0, 1)[None].float()
    small = F.interpolate(planes, (tall, wide), mode="area")[0].permute(1, 2, 0)
    if not coloured:
        return Text("\n").join(_shades(row) for row in small.mean(-1) / 255)
    rows = small.expand(-1, -1, 3).round().int().tolist()
    rows += [rows[-1]] * (len(rows) % 2)
    return Text("\n").join(map(_half_blocks, rows[::2], rows[1::2]))


def _shades(row: Float[Tensor, " wide"]) -> Text:
    return Text("".join(SHADES[round(v * (len(SHADES) - 1))] * 2 for v in row.tolist()))


def _half_blocks(upper: Sequence[Sequence[int]], lower: Sequence[Sequence[int]]) -> Text:
    pairs = zip(upper, lower, strict=True)
    return Text.assemble(*(("▀", f"{_hex(above)} on {_hex(below)}") for above, below in pairs))


def _hex(colour: Sequence[int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def influence_grid(grid: Float[Tensor, "rows columns"], *, coloured: bool) -> Text:
    """A cell of two characters for each patch: for the label, against it, or neither."""
    most = float(grid.abs().max()) or 1.0
    return Text("\n").join(
        Text.assemble(*(_cell(value / most, coloured) for value in row)) for row in grid.tolist()
    )


def _cell(share: float, coloured: bool) -> tuple[str, str]:
    level = sum(abs(share) >= least for least in LEVELS)
    if not level:
        return NOTHING, "dim"
    if coloured:
        return "  ", (FOR if share > 0 else AGAINST)[level - 1]
    return (PLUS if share > 0 else MINUS)[level - 1], ""


def attention_grid(grid: Float[Tensor, "rows columns"]) -> Text:
    """The brighter, the more a patch is attended to."""
    low, high = torch.aminmax(grid)
    return shaded((grid - low) / (high - low).clamp(min=1e-9), wide=2)
