"""Positions: order enters through the input, the queries and keys, or the scores.

To add a scheme, write one class that overrides one of the three hooks (Transformer-XL needs two)
and add one line to POSITIONS, where the tests find it, and one to `config.POSITION_NAMES`. Layers
that are given the same object share its parameters.
"""

from typing import Any

from glassformer.core.positions.absolute import Learned, Sinusoidal
from glassformer.core.positions.base import Position
from glassformer.core.positions.relative import T5, Alibi, Shaw, TransformerXL
from glassformer.core.positions.rotary import SCALINGS, Linear, Llama3, Ntk, Rotary, Scaling, Yarn
from glassformer.errors import unknown

__all__ = [
    "POSITIONS",
    "SCALINGS",
    "T5",
    "Alibi",
    "Learned",
    "Linear",
    "Llama3",
    "Ntk",
    "Position",
    "Rotary",
    "Scaling",
    "Shaw",
    "Sinusoidal",
    "TransformerXL",
    "Yarn",
    "adds_to_scores",
    "make_position",
    "name_of",
    "turns",
]

POSITIONS: dict[str, type[Position]] = {
    "none": Position,
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "rotary": Rotary,
    "alibi": Alibi,
    "t5": T5,
    "shaw": Shaw,
    "transformer-xl": TransformerXL,
}


def make_position(name: str, dim: int, heads: int, max_length: int, **options: Any) -> Position:
    """The scheme of this name, for a model of these sizes."""
    if name not in POSITIONS:
        raise ValueError(unknown("position", name, POSITIONS))
    return POSITIONS[name](dim, heads, max_length, **options)


def name_of(position: Position) -> str:
    """The scheme's name in POSITIONS; for an unlisted scheme, the name of its class."""
    names = (name for name, scheme in POSITIONS.items() if scheme is type(position))
    return next(names, type(position).__name__)


def turns(scheme: type[Position]) -> bool:
    """Whether it changes queries and keys."""
    return scheme.turn is not Position.turn


def adds_to_scores(scheme: type[Position]) -> bool:
    """Whether it adds to the scores."""
    return scheme.bias is not Position.bias
