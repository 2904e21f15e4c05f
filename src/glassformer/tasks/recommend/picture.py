"""A picture of the items by their first two features, with the names of the best known ones."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from glassformer.explaining.views.pictures import (
    AGAINST,
    FOR,
    INK,
    QUIET,
    families_for,
    save_picture,
)

SIZE = (10.0, 7.5)  # inches
NAMED = 60  # items, besides those of the prediction
LETTER = 6.5  # points
ROOM = (0.0075, 0.016)  # of the picture, for a letter: across and down


def draw_items(
    features: Float[np.ndarray, "I 2"],
    names: Sequence[str],
    counts: Int[np.ndarray, " I"],
    best: Int[np.ndarray, " _"],
    known: Int[np.ndarray, " _"],
    path: Path,
) -> None:
    """Draw all items; names that would cover another are left out.

    Args:
        counts: How often each item was taken: the most frequent ones are named.
        best: The items that are recommended.
        known: Those that the prediction is based on.
    """
    figure = import_module("matplotlib.figure").Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    marked, used = {*best.tolist()}, {*known.tolist()}
    by_count = np.argsort(-counts, kind="stable")
    order = list(dict.fromkeys(np.concatenate([best, known, by_count]).tolist()))
    colours = [FOR if n in marked else AGAINST if n in used else QUIET for n in range(len(names))]
    axes.scatter(*features.T, s=14, c=colours, linewidths=0)
    shown = without_overlap(features, names, order[: NAMED + len(marked) + len(used)])
    fonts = families_for("".join(names[n] for n in shown))
    for n in shown:
        style: dict[str, Any] = {"color": colours[n] if n in marked | used else INK}
        axes.annotate(
            names[n],
            features[n],
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=LETTER,
            fontfamily=fonts,
            parse_math=False,
            **style,
        )
    axes.set_xlabel("first feature", color=QUIET)
    axes.set_ylabel("second feature", color=QUIET)
    axes.set_title(
        f"{len(names):,} items; blue: recommended, orange: what that is based on",
        color=QUIET,
        fontsize=9,
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=QUIET, labelsize=7)
    save_picture(figure, path)


def without_overlap(
    features: Float[np.ndarray, "I 2"], names: Sequence[str], order: Sequence[int]
) -> list[int]:
    """The first items whose names cover no earlier one."""
    low, high = features.min(0), features.max(0)
    places = (features - low) / np.maximum(high - low, 1e-9)
    boxes: list[tuple[float, float, float]] = []  # left, right, bottom
    shown = []
    for n in order:
        left, bottom = places[n].tolist()
        right = left + ROOM[0] * len(names[n])
        if all(right < a or left > b or abs(bottom - floor) > ROOM[1] for a, b, floor in boxes):
            boxes.append((left, right, bottom))
            shown.append(n)
    return shown
