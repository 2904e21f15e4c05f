"""Tokens: a learned vector for every token of a vocabulary."""

import math

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors


class Tokens(nn.Module):
    """Looks up tokens, and scores vectors against all of them. Press and Wolf, 2016.

        vector = √D table[token]        score = table x

    The table starts with variance 1/D, which keeps scores near 1; √D brings the vectors to the same
    scale, so that positions added to them do not dominate.

    Args:
        vocabulary: Size of the vocabulary.
        scale: Whether vectors are multiplied by √D.
        softcap: Scores stay within ± this limit; None for no limit.
    """

    def __init__(
        self, vocabulary: int, dim: int, *, scale: bool = True, softcap: float | None = None
    ) -> None:
        super().__init__()
        self.vocabulary, self.dim = vocabulary, dim
        self.scale, self.softcap = math.sqrt(dim) if scale else 1.0, softcap
        self.table = nn.Embedding(vocabulary, dim)
        nn.init.normal_(self.table.weight, std=dim**-0.5)

    def forward(
        self, tokens: Int[Tensor, "B T"] | Int[Tensor, " N"], layout: Layout
    ) -> tuple[Vectors, Layout]:
        """The vector of each token; the layout stays."""
        return self.table(tokens) * self.scale, layout

    def scores(self, x: Vectors) -> Float[Tensor, "B T V"] | Float[Tensor, "N V"]:
        """How well a vector matches each token: an output layer tied to the table."""
        return F.linear(x, self.table.weight)
