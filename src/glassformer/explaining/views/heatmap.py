"""Attention as a heatmap in the terminal: the brighter, the larger the weight.

Shades are readable without colour, so the heatmap survives a pipe or a log file.
"""

from collections.abc import Sequence

from jaxtyping import Float
from rich.text import Text
from torch import Tensor

SHADES = " ·░▒▓█"
HEAT = ("", "#59407e", "#8a3f86", "#c2456b", "#f07f4f", "#ffd166")


def shaded(weights: Float[Tensor, "T S"], *, wide: int = 1) -> Text:
    """One line per query, `wide` characters per key, brightest for the largest weight."""
    levels = (weights / weights.max().clamp(min=1e-9) * (len(SHADES) - 1)).round().long().tolist()
    lines = (Text.assemble(*((SHADES[n] * wide, HEAT[n]) for n in line)) for line in levels)
    return Text("\n").join(lines)


def labelled(
    weights: Float[Tensor, "T S"], queries: Sequence[str], keys: Sequence[str], *, wide: int = 2
) -> Text:
    """The same with keys above and queries to the left. Labels are short: one token each."""
    if (len(queries), len(keys)) != tuple(weights.shape):
        raise ValueError(
            f"got labels for {len(queries)} queries and {len(keys)} keys, but the weights are "
            f"{weights.shape[0]} by {weights.shape[1]}; label every query and key"
        )
    margin = max(len(query) for query in queries)
    heads = Text(" " * (margin + 1) + "".join(f"{key:^{wide}}" for key in keys), "bold")
    lines = shaded(weights, wide=wide).split("\n")
    rows = (
        Text(f"{query:>{margin}} ", "bold") + line
        for query, line in zip(queries, lines, strict=True)
    )
    return Text("\n").join([heads, *rows])
