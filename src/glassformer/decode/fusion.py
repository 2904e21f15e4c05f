"""Shallow fusion: the weighted scores of a language model are added while searching.

    score(text) = log p(text | sound) + weight log p(text)                   Gulcehre et al., 2015

A language model is a function from prefixes to the log-probabilities of their next tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

TOGETHER = 4096  # prefixes scored at once


@runtime_checkable
class NextTokens(Protocol):
    """A language model, as searches see it."""

    def __call__(
        self, tokens: Int[Tensor, "N L"], sizes: Int[Tensor, " N"]
    ) -> Float[Tensor, "N V"]:
        """The log-probability of every next token after each prefix.

        Args:
            tokens: Prefixes without a start token; what follows their sizes is ignored.
        """
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Fusion:
    """A language model, its weight, and the token that ends a text."""

    model: NextTokens
    weight: float
    end: int

    def next(self, tokens: Int[Tensor, "N L"], sizes: Int[Tensor, " N"]) -> Float[Tensor, "N V"]:
        """What every next token adds to the score of its prefix."""
        return self.weight * self.model(tokens, sizes)

    def log_probabilities(
        self, texts: Sequence[Sequence[int]], device: torch.device
    ) -> list[float]:
        """Of whole texts and their ends, by the language model alone."""
        longest = max(map(len, texts))
        padded = [[*text, self.end, *[0] * (longest - len(text))] for text in texts]
        tokens = torch.tensor(padded, device=device).reshape(len(texts), longest + 1)
        lengths = torch.tensor([len(text) + 1 for text in texts], device=device)
        text = torch.arange(len(texts), device=device).repeat_interleave(lengths)
        sizes = torch.arange(len(text), device=device) - (lengths.cumsum(0) - lengths)[text]
        totals = torch.zeros(len(texts), device=device)
        for some, size in zip(text.split(TOGETHER), sizes.split(TOGETHER), strict=True):
            scores = self.model(tokens[some], size)
            each = scores.gather(1, tokens[some, size][:, None])[:, 0]
            totals.index_add_(0, some, each)
        return totals.tolist()
