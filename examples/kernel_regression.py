"""Attention from 1964: fit a curve to noisy samples, and learn the width of the kernel.

    python examples/kernel_regression.py

Nadaraya and Watson answer a query with a weighted average of the samples, in which near ones count
most. A kernel that is too narrow fits the noise; one that is too wide flattens the curve. The width
can be learned, as long as no sample may see itself: otherwise the best width is zero.
"""

import torch
import torch.nn.functional as F
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.progress import track
from rich.table import Table
from rich.text import Text
from torch import Tensor

from glassformer.core.classic import KernelRegression, all_but_self
from glassformer.explaining.views.heatmap import shaded

Line = tuple[Tensor, Tensor, str]  # x, y, and a style

REACH, NOISE, STEPS = 5.0, 0.5, 300
BRAILLE = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]]  # the dots of one character


def curve(x: Tensor) -> Tensor:
    """The true curve."""
    return 2 * x.sin() + x**0.8


def sample(points: int) -> tuple[Tensor, Tensor]:
    """Points in order, and noisy measurements there."""
    x = (REACH * torch.rand(points)).sort().values
    return x, curve(x) + NOISE * torch.randn(points)


def learn_width(x: Tensor, y: Tensor, may_see: Tensor | None, title: str) -> KernelRegression:
    """Learn the width that best predicts each sample from those it may see."""
    kernel = KernelRegression(width=1.0, learn=True)
    optimizer = torch.optim.Adam(kernel.parameters(), lr=0.05)
    for _ in track(range(STEPS), description=title):
        optimizer.zero_grad()
        F.mse_loss(kernel(x, x, y, may_see), y).backward()
        optimizer.step()
    return kernel.requires_grad_(False)


def compare(kernels: dict[str, KernelRegression], x: Tensor, y: Tensor) -> Table:
    """Held-out errors in two parts: the noise, which nobody can avoid, and what the kernel adds."""
    queries, measured = sample(1000)
    floor = F.mse_loss(curve(queries), measured).item()
    table = Table("kernel", title="Squared error on new points", min_width=76, title_justify="left")
    table.add_column("width", justify="right")
    table.add_column("error", justify="right")
    table.add_column("[blue]─ noise[/]  [red]━ due to the kernel[/]")
    noise = Text("─" * round(30 * floor), "blue")
    for name, kernel in kernels.items():
        error = F.mse_loss(kernel(queries, x, y), measured).item()
        bar = noise + Text("━" * round(30 * (error - floor)), "red")
        style = "bold green" if name == "learned" else ""
        table.add_row(name, f"{kernel.width:.3f}", f"{error:.3f}", bar, style=style)
    table.add_row("the true curve", "", f"{floor:.3f}", noise)
    return table


def plot(lines: list[Line], points: Line, columns: int = 72, rows: int = 15) -> Text:
    """Lines in braille, eight dots to a character, and points on top of them."""
    heights = torch.cat([y for _, y, _ in [*lines, points]])
    low, high = heights.min(), heights.max()
    dots, cells = torch.zeros(rows, columns, dtype=torch.long), {}
    for x, y, style in [*lines, points]:
        across = (x / REACH * (2 * columns - 1)).round().long().tolist()
        down = ((high - y) / (high - low) * (4 * rows - 1)).round().long().tolist()
        for i, j in zip(down, across, strict=True):
            cell = i // 4, j // 2
            dots[cell] |= BRAILLE[i % 4][j % 2]
            cells[cell] = ("•" if style == points[2] else chr(0x2800 + int(dots[cell])), style)
    grid = ([cells.get((i, j), " ") for j in range(columns)] for i in range(rows))
    return Text("\n").join(Text.assemble(*row) for row in grid)


def square(weights: Tensor, side: int = 22) -> Text:
    """Who looks at whom, shaded: queries go down and samples across, both in order."""
    pooled = F.adaptive_avg_pool2d(weights[None, None], (side // 2, side))[0, 0]
    return shaded(pooled)


def main() -> None:
    """Fit, compare and draw."""
    torch.manual_seed(0)
    console = Console(width=80)
    x, y = sample(66)
    learned = learn_width(x, y, all_but_self(x), "training, all but self ")
    selfish = learn_width(x, y, None, "training, self included")
    kernels = {f"fixed at {w}": KernelRegression(w) for w in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)}
    kernels |= {"learned, self included": selfish, "learned": learned}
    console.print(compare(kernels, x, y))

    grid = torch.linspace(0, REACH, 999)
    lines = [(grid, curve(grid), "grey50"), (grid, learned(grid, x, y), "bold green")]
    legend = "[cyan]• samples[/]   [grey50]━ the true curve[/]   [bold green]━ learned[/]"
    console.print(Panel(plot(lines, (x, y, "cyan")), title=legend, width=76))

    narrow, wide = kernels["fixed at 0.02"], kernels["fixed at 2.0"]
    chosen = {"too narrow": narrow, "learned": learned, "too wide": wide}
    console.print(
        Columns(
            Panel(square(kernel.weights(x, x)), title=f"{name}: {kernel.width:.2f}", width=26)
            for name, kernel in chosen.items()
        )
    )
    console.print("[dim]Rows are queries, columns samples: the brighter, the more attention.[/]")


if __name__ == "__main__":
    main()
