"""An encoder and a pool of words, in rows of characters: they read where words end, and only that.

What they are given and return has a place for every character, so members of an ensemble that read
words and others that read characters can stand side by side.
"""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.layout import Layout, pack, pad
from glassformer.core.shapes import Vectors
from glassformer.models.frontends.words import WordEnds


class WordEncoder(nn.Module):
    """An encoder of the vectors where words end, one after the other."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: Vectors, *, layout: Layout, **call: Any) -> Vectors:
        """The encoded vectors where words end, and zeros elsewhere."""
        words = word_ends(layout)
        encoded = self.inside(words_of(x, layout), layout=words.layout, **call)
        rows = words.scatter(encoded, layout.longest)
        return pack(rows, layout) if layout.is_packed else rows


class WordPool(nn.Module):
    """A pool of the vectors where words end."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: Vectors, layout: Layout) -> Float[Tensor, "B D"]:
        """One vector for each row."""
        pooled: Tensor = self.inside(words_of(x, layout), word_ends(layout).layout)
        return pooled


def words_of(x: Vectors, layout: Layout) -> Float[Tensor, "B W D"]:
    """The vectors where words end, in padded rows of words."""
    return word_ends(layout).gather(pad(x, layout) if layout.is_packed else x)


def word_ends(layout: Layout) -> WordEnds:
    """Where words end, as a frontend of words has found out."""
    if WordEnds not in layout.memo:
        raise ValueError(
            "this layout does not know where words end; pass the one that the frontend returned"
        )
    found: WordEnds = layout.memo[WordEnds]
    return found
