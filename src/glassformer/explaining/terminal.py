"""Attention as a picture in the terminal: the brighter, the more is taken.

Shades carry the picture where there is no colour, so it survives a pipe or a log file.
"""

from collections.abc import Sequence

from jaxtyping import Float
from rich.text import Text
from torch import Tensor

SHADES = " ·░▒▓█"
HEAT = ("", "#59407e", "#8a3f86", "#c2456b", "#f07f4f", "#ffd166")


def shaded(weights: Float[Tensor, "T S"], *, wide: int = 1) -> Text:
    """A line a query, a cell a key, each `wide` characters, brightest for the largest weight."""
    levels = (weights / weights.max().clamp(min=1e-9) * (len(SHADES) - 1)).round().long().tolist()
    lines = (Text.assemble(*((SHADES[n] * wide, HEAT[n]) for n in line)) for line in levels)
    return Text("\n").join(lines)


def labelled(
    weights: Float[Tensor, "T S"], queries: Sequence[str], keys: Sequence[str], *, wide: int = 2
) -> Text:
    """The same with the keys above and each line's query before it. Labels are short: one token."""
    if (len(queries), len(keys)) != tuple(weights.shape):
        raise ValueError(
            f"{len(queries)} queries and {len(keys)} keys are named, "
            f"but the weights are {weights.shape[0]} by {weights.shape[1]}"
        )
    margin = max(len(query) for query in queries)
    heads = Text(" " * (margin + 1) + "".join(f"{key:^{wide}}" for key in keys), "bold")
    lines = shaded(weights, wide=wide).split("\n")
    rows = (
        Text(f"{query:>{margin}} ", "bold") + line
        for query, line in zip(queries, lines, strict=True)
    )
    return Text("\n").join([heads, *rows])
