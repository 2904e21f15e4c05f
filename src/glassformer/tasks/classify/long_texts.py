"""Texts longer than a model reads: which of their tokens it gets.

    head      the first ones
    tail      the last ones
    both      half from each end
    windows   all of them, in pieces; predictions are averaged, and training picks one at random

A long text is read in pieces of full length. A way tells by how much each token of a piece comes
later in the text than in the piece. To add one, write that function and list it in WAYS.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from glassformer.data.jagged import Jagged, places_in_rows

Numbers = Int[np.ndarray, " rows"]
ByPlace = Int[np.ndarray, " places"]


@dataclass(frozen=True, slots=True)
class Way:
    """How a long text is read.

    Attributes:
        shift: How much later tokens come in the text than in the piece, given for each how many
            tokens are too many, its piece, its place there, and for all the length of a piece.
        whole: Whether a text is read whole, in several pieces; otherwise one piece is read.
    """

    shift: Callable[[ByPlace, ByPlace, ByPlace, int], ByPlace]
    whole: bool = False

    def pieces(self, lengths: Numbers, longest: int) -> Numbers:
        """How many pieces of texts of these lengths are read."""
        return np.maximum(1, -(-lengths // longest)) if self.whole else np.ones_like(lengths)

    def read(self, lengths: Numbers, piece: Numbers, longest: int) -> Jagged:
        """The places in texts of these lengths of the tokens that one piece of each has."""
        sizes = np.minimum(lengths, longest)
        places = places_in_rows(sizes)
        over, piece = np.repeat(lengths - sizes, sizes), np.repeat(piece, sizes)
        return Jagged(places + self.shift(over, piece, places, longest), sizes)


def head(over: ByPlace, piece: ByPlace, place: ByPlace, longest: int) -> ByPlace:
    """The first tokens."""
    return np.zeros_like(over)


def tail(over: ByPlace, piece: ByPlace, place: ByPlace, longest: int) -> ByPlace:
    """The last tokens."""
    return over


def both(over: ByPlace, piece: ByPlace, place: ByPlace, longest: int) -> ByPlace:
    """Half from each end."""
    return np.where(place < (longest + 1) // 2, 0, over)


def windows(over: ByPlace, piece: ByPlace, place: ByPlace, longest: int) -> ByPlace:
    """All tokens, in pieces of full length; the last piece ends with the text."""
    return np.minimum(piece * longest, over)


WAYS: dict[str, Way] = {
    "head": Way(head),
    "tail": Way(tail),
    "both": Way(both),
    "windows": Way(windows, whole=True),
}
