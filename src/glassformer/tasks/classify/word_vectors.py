"""Vectors of words from the words around them, without training.

How much more often two words occur near each other than by chance (the positive part of their
pointwise mutual information) is a large sparse matrix; the best approximation of low rank gives
words of similar use similar vectors. Levy and Goldberg, "Neural word embedding as implicit matrix
factorization", 2014; contexts are smoothed as in Levy, Goldberg and Dagan, 2015.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

WINDOW = 8  # words on either side; one at distance d counts 1/√d
SMOOTHING = 0.75  # exponent of how often a context occurs: rare ones matter less
ROUNDS = 3  # of the iteration that finds the approximation
TINY = 1e-6


def word_vectors(
    words: Int[Tensor, " N"], text_of: Int[Tensor, " N"], *, vocabulary: int, dim: int, seed: int
) -> tuple[Float[Tensor, "V D"], Int[Tensor, " known"]]:
    """A vector of length 1 for every word, and the words that have one; others are all zeros.

    Args:
        words: The words of all texts, one text after the other.
        text_of: The text of each word, in ascending order.
    """
    information = positive_information(cooccurrences(words, text_of, vocabulary))
    known = torch.unique(information.indices()[0])
    vectors = torch.zeros(vocabulary, dim)
    rank = min(dim + 1, len(known))
    if rank < 2:
        return vectors, known[:0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        left, sizes, _ = torch.svd_lowrank(information, rank, niter=ROUNDS)
    found = (left * sizes.sqrt())[known, 1:]  # the first direction says how frequent a word is
    found = found - found.mean(0)
    vectors[known, : rank - 1] = found / (found.norm(dim=1, keepdim=True) + TINY)
    return vectors, known


def cooccurrences(
    words: Int[Tensor, " N"], text_of: Int[Tensor, " N"], vocabulary: int
) -> Float[Tensor, "V V"]:
    """How often each word occurs near each other word, as a sparse matrix."""
    pairs, weights = [], []
    for distance in range(1, WINDOW + 1):
        together = text_of[distance:] == text_of[:-distance]
        first, second = words[:-distance][together], words[distance:][together]
        found, counts = torch.unique(first * vocabulary + second, return_counts=True)
        pairs.append(found)
        weights.append(counts * distance**-0.5)
    pair = torch.cat(pairs)
    places = torch.stack([pair // vocabulary, pair % vocabulary])
    places, values = torch.cat([places, places.flip(0)], 1), torch.cat(weights * 2)
    return sparse(places, values, vocabulary).coalesce()


def positive_information(counts: Float[Tensor, "V V"]) -> Float[Tensor, "V V"]:
    """max(0, log p(word, context) / (p(word) p(context))), sparse as the counts are."""
    (word, context), values = counts.indices(), counts.values()
    often = torch.zeros(len(counts)).index_add_(0, word, values)
    contexts = often**SMOOTHING
    contexts = contexts / contexts.sum()
    information = torch.log(values / (often[word] * contexts[context]))
    kept = information > 0
    return sparse(counts.indices()[:, kept], information[kept], len(counts)).coalesce()


def sparse(
    places: Int[Tensor, "2 values"], values: Float[Tensor, " values"], size: int
) -> Float[Tensor, "V V"]:
    """A square matrix with these values at these places."""
    shape = (size, size)
    return torch.sparse_coo_tensor(places, values, shape, check_invariants=False)
