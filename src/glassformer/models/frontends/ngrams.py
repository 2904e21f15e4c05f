"""Tokens and the n-grams that end in them: the sum of their vectors.

    vector = √D (table[token] + Σₙ grams[hash of the last n tokens])

This gives an encoder the short phrases that a linear model relies on, from its first layer.
n-grams share a fixed number of vectors by a hash, as in fastText (Bojanowski et al., 2016), which
start at zero: before training this equals `Tokens`. An n-gram never reaches beyond the start of its
row, or ahead. Each member of an ensemble hashes with a salt of its own, so that n-grams that share
a vector in one are apart in the others.
"""

import math

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors

PRIME, MIXER = 0x9E3779B1, 0x85EBCA6B
SALTED = 0x13C6E  # even, so that mixers stay odd


class NgramTokens(nn.Module):
    """Looks up tokens and n-grams.

    Args:
        vocabulary: Size of the vocabulary.
        longest: The longest n-gram, in tokens; 2 or more.
        buckets: Number of vectors that the n-grams share.
        salt: Which n-grams share one: others with another salt.
        scale: Whether vectors are multiplied by √D.
    """

    def __init__(
        self,
        vocabulary: int,
        dim: int,
        *,
        longest: int,
        buckets: int,
        salt: int = 0,
        scale: bool = True,
    ) -> None:
        super().__init__()
        self.vocabulary, self.dim, self.longest, self.salt = vocabulary, dim, longest, salt
        self.scale = math.sqrt(dim) if scale else 1.0
        self.table = nn.Embedding(vocabulary, dim)
        self.grams = nn.Embedding(buckets, dim)
        nn.init.normal_(self.table.weight, std=dim**-0.5)
        nn.init.zeros_(self.grams.weight)

    def forward(
        self, tokens: Int[Tensor, "B T"] | Int[Tensor, " N"], layout: Layout
    ) -> tuple[Vectors, Layout]:
        """The vector of each token plus those of the n-grams that end with it."""
        sizes, buckets = range(2, self.longest + 1), self.grams.num_embeddings
        found, whole = ngrams_ending(tokens, _row_index(layout), sizes, buckets, self.salt)
        grams = (self.grams(found) * whole[..., None]).sum(0)
        return (self.table(tokens) + grams) * self.scale, layout


def ngrams_ending(
    numbers: Int[Tensor, "..."],
    index: Int[Tensor, "..."],
    sizes: range,
    buckets: int,
    salt: int = 0,
) -> tuple[Int[Tensor, "sizes ..."], Bool[Tensor, "sizes ..."]]:
    """The bucket of the n-gram of each size that ends in each token, and whether it is whole.

    All sizes are together, to be looked up at once: each look-up has a gradient as large as the
    table.

    Args:
        index: How many tokens before each one an n-gram may reach.
        sizes: Sizes of n-grams, one after the other.
    """
    number, shifted = numbers, numbers
    found, whole = [], []
    for size in range(1, sizes.stop):
        if size > 1:
            shifted = shifted.roll(1, dims=-1)
            number = (number * PRIME + shifted + 1) % (1 << 31)
        if size in sizes:
            found.append(bucket_of(number, size, buckets, salt))
            whole.append((index >= size - 1).expand_as(numbers))
    return torch.stack(found), torch.stack(whole)


def bucket_of(
    number: Int[Tensor, "..."], size: int, buckets: int, salt: int = 0
) -> Int[Tensor, "..."]:
    """The bucket of an n-gram, hashed together with its length."""
    mixed = (number + size) * (MIXER + SALTED * salt) % (1 << 31)
    return (mixed ^ (mixed >> 15)) % buckets


def _row_index(layout: Layout) -> Int[Tensor, "b T"] | Int[Tensor, " N"]:
    """Each token's index within its row, whatever position the row starts at."""
    if layout.row_of is None:
        return torch.arange(layout.longest, device=layout.device)[None]
    return torch.arange(len(layout.row_of), device=layout.device) - layout.bounds[layout.row_of]
