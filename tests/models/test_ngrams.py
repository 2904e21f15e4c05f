"""Words and n-grams: what ends in a token, whatever else is in the batch."""

from itertools import combinations

import torch

from glassformer.core.layout import Layout, pack
from glassformer.models.frontends import NgramTokens, Tokens
from glassformer.models.frontends.ngrams import PRIME, bucket_of

V, D, BUCKETS = 17, 7, 1009


def frontend(longest=3):
    made = NgramTokens(V, D, longest=longest, buckets=BUCKETS)
    torch.nn.init.normal_(made.grams.weight)
    return made


def test_before_training_it_is_a_plain_embedding():
    grams, plain = NgramTokens(V, D, longest=3, buckets=BUCKETS), Tokens(V, D)
    plain.table = grams.table
    tokens, layout = torch.randint(V, (2, 5)), Layout.full(2, 5)
    assert torch.equal(grams(tokens, layout)[0], plain(tokens, layout)[0])


def test_packed_equals_padded_equals_alone():
    grams, lengths = frontend(), [5, 2, 3]
    tokens = torch.randint(V, (3, 5))
    padded = Layout.padded(lengths)
    whole, _ = grams(tokens, padded)
    packed, _ = grams(pack(tokens, padded.as_packed()), padded.as_packed())
    torch.testing.assert_close(packed, pack(whole, padded.as_packed()))
    for row, length in enumerate(lengths):
        alone, _ = grams(tokens[row : row + 1, :length], Layout.full(1, length))
        torch.testing.assert_close(alone[0], whole[row, :length])


def test_a_token_knows_the_two_before_it_and_nothing_else():
    grams, tokens = frontend(), torch.tensor([[3, 5, 7, 11, 13]])
    before, _ = grams(tokens, Layout.full(1, 5))
    tokens[0, 1] = 2
    after, _ = grams(tokens, Layout.full(1, 5))
    assert (before != after).any(-1).tolist() == [[False, True, True, True, False]]


def test_the_order_of_an_ngram_counts_and_so_does_its_length():
    grams = frontend(2)
    grams.table.weight.data.zero_()
    vectors, _ = grams(torch.tensor([[3, 5], [5, 3], [3, 5]]), Layout.full(3, 2))
    assert torch.equal(vectors[0, 1], vectors[2, 1])
    assert not torch.equal(vectors[0, 1], vectors[1, 1])
    assert not vectors[:, 0].any(), "one token is no n-gram"


def test_different_ngrams_rarely_share_a_vector():
    pairs = torch.cartesian_prod(torch.arange(V), torch.arange(V))
    numbers = pairs[:, 0] * PRIME + pairs[:, 1] + 1
    taken = [bucket_of(numbers, n, BUCKETS, salt) for n in (2, 3) for salt in (0, 1, 3)]
    for buckets in taken:
        assert 0 <= buckets.min() <= buckets.max() < BUCKETS
        by_chance = BUCKETS * (1 - (1 - 1 / BUCKETS) ** len(pairs))
        assert len(buckets.unique()) > 0.9 * by_chance
    for one, other in combinations(taken, 2):
        together = (one[:, None] == one).fill_diagonal_(False)
        assert together.any()
        assert (other[:, None] == other)[together].float().mean() < 0.1
        assert (one != other).float().mean() > 0.9
