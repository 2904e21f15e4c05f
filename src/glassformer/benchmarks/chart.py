"""The chart of cost against length, drawn by matplotlib, which the `bench` extra installs."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from glassformer.benchmarks.pairs import Result

# Safe for colour-blind readers: Okabe and Ito, 2008; markers differ, too.
STYLES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
)
INK, GRID = "#222222", "#DDDDDD"


def draw(results: Sequence[Result], path: Path, caption: str) -> None:
    """Plot time and, if measured, memory of each kind of layer against length."""
    import_module("matplotlib").use("Agg")  # without a window
    plots, ticker = import_module("matplotlib.pyplot"), import_module("matplotlib.ticker")
    panels = {"time of a training step, ms": [r.time.ours * 1e3 for r in results]}
    if all(r.memory for r in results):
        panels["peak memory, MB"] = [(r.memory or 0) / 1e6 for r in results]
    figure, axes = plots.subplots(
        1, len(panels), figsize=(6 * len(panels) + 1.5, 5), squeeze=False, layout="constrained"
    )
    figure.set_facecolor("white")
    for axis, (label, amounts) in zip(axes[0], panels.items(), strict=True):
        draw_lines(axis, results, amounts)
        axis.set_xlabel("sequence length n", color=INK, fontsize=12)
        axis.set_ylabel(label, color=INK, fontsize=12)
        axis.xaxis.set_major_locator(ticker.FixedLocator(sorted({r.length for r in results})))
        axis.xaxis.set_major_formatter(ticker.ScalarFormatter())
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:g}"))
        axis.minorticks_off()
    lines = axes[0][0].get_lines()
    figure.legend(handles=lines, loc="outside right upper", frameon=False, fontsize=11)
    figure.suptitle("Cost of a layer against sequence length", color=INK, fontsize=14)
    figure.supxlabel(caption, color="#666666", fontsize=9)
    figure.savefig(path, dpi=160)
    plots.close(figure)


def draw_lines(axis: Any, results: Sequence[Result], amounts: Sequence[float]) -> None:
    """One panel: one line per kind of layer, on log-log axes, where a power is a slope."""
    axis.set_facecolor("white")
    names = list(dict.fromkeys(result.ours for result in results))
    for number, name in enumerate(names):
        colour, mark = STYLES[number % len(STYLES)]
        points = [(r.length, y) for r, y in zip(results, amounts, strict=True) if r.ours == name]
        axis.loglog(*zip(*points, strict=True), label=name, color=colour, marker=mark, linewidth=2)
    axis.grid(color=GRID)
    axis.tick_params(colors=INK, labelsize=11)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
