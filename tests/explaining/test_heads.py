"""Heads: where they look is measured and named."""

import math

import pytest
import torch

from glassformer.explaining.heads import HeadProfile, is_delimiter, profile_heads
from glassformer.explaining.parts import AttentionMap

T, S = 7, 11
WORDS = ("The", "old", "cat", ".", "It", "sleeps", "!")


def one_hot(places, keys):
    """A head that gives all of its weight to one key for each query, a little to the others."""
    weights = torch.full((len(places), keys), 0.2 / (keys - 1))
    weights[torch.arange(len(places)), torch.tensor(places)] = 0.8
    return weights


def around(*heads, causal=False, tokens=WORDS):
    weights = torch.stack(heads)
    if causal:
        weights = weights.tril()
        weights = weights / weights.sum(-1, keepdim=True)
    return AttentionMap(
        name="encoder.blocks.0.attention", queries=tokens, keys=tokens, weights=weights
    )


def test_heads_of_self_attention_are_named_after_where_most_of_their_weight_goes():
    steps = range(T)
    heads = {
        "previous": one_hot([max(0, at - 1) for at in steps], T),
        "next": one_hot([min(T - 1, at + 1) for at in steps], T),
        "own": one_hot(list(steps), T),
        "first": one_hot([0] * T, T),
        "delimiter": one_hot([3, 6, 3, 3, 6, 6, 3], T),
        "broad": torch.full((T, T), 1 / T),
        "": one_hot([4, 1, 4, 5, 2, 1, 0], T),
    }
    found = profile_heads([[around(*heads.values())]])
    assert [profile.kind for profile in found] == list(heads)
    assert [profile.head for profile in found] == list(range(T))
    previous = found[0]
    # The first query has no token before it: it does not count.
    assert previous.shares["previous"] == pytest.approx(0.8)
    assert previous.shares["own"] == pytest.approx((0.8 + 6 * 0.2 / 6) / 7)


def test_tokens_that_nothing_looks_at_are_not_counted():
    ends = torch.tensor([0, 2, 3, 6])
    between, words = torch.zeros(1, T, T), one_hot([0, 0, 1, 2], 4)
    between[:, ends[:, None], ends] = words
    [found] = profile_heads([[around(*between)]])
    [expected] = profile_heads([[around(words, tokens=tuple(WORDS[end] for end in ends))]])
    assert found == expected
    assert found.kind == "previous"


def test_entropy_and_distance_are_averages_over_queries():
    uniform, sharp = torch.full((T, T), 1 / T), one_hot([0] * T, T)
    flat, first = profile_heads([[around(uniform, sharp)]])
    assert flat.entropy == pytest.approx(math.log(T))
    assert flat.evenness == pytest.approx(1)
    assert flat.distance == pytest.approx(sum(abs(q - k) for q in range(T) for k in range(T)) / 49)
    by_hand = -0.8 * math.log(0.8) - 0.2 * math.log(0.2 / 6)
    assert first.entropy == pytest.approx(by_hand)
    assert first.evenness == pytest.approx(by_hand / math.log(T))


def test_what_a_mask_leaves_no_choice_of_names_no_head():
    even = torch.ones(T, T)
    (found,) = profile_heads([[around(even, causal=True, tokens=tuple("abcdefg"))]])
    # Of the queries that see more than one key, uniform ones put 1/2, 1/3, ... on the first.
    right = sum(1 / (at + 1) for at in range(1, T)) / (T - 1)
    assert found.shares["first"] == pytest.approx(right)
    assert "next" not in found.shares
    assert found.kind == "broad"
    short = profile_heads([[around(torch.ones(2, 2), causal=True, tokens=("a", "b"))]])[0]
    assert short.shares["first"] == pytest.approx(0.5)  # as chance has it
    assert short.kind == "broad"


def test_queries_that_are_the_last_tokens_of_the_keys_stand_at_their_own_places():
    whole = around(one_hot([max(0, at - 1) for at in range(T)], T))
    last = AttentionMap(
        name=whole.name,
        queries=("what", "they", "write"),  # the token that each chooses, not the one it is
        keys=WORDS,
        weights=whole.weights[:, -3:],
    )
    (found,) = profile_heads([[last]])
    assert found.kind == "previous"
    assert found.shares["previous"] == pytest.approx(0.8)


def across(weights, tokens=tuple("abcdefghijk")):
    return AttentionMap(
        name="decoder.blocks.0.cross_attention", queries=WORDS, keys=tokens, weights=weights
    )


def test_a_head_of_cross_attention_that_follows_the_source_is_diagonal():
    along = one_hot([round(at * (S - 1) / (T - 1)) for at in range(T)], S)
    back = one_hot([S - 1 - round(at * (S - 1) / (T - 1)) for at in range(T)], S)
    diagonal, other = profile_heads([[across(torch.stack([along, back]))]])
    assert (diagonal.kind, other.kind) == ("diagonal", "")
    assert diagonal.distance is None
    assert "previous" not in diagonal.shares


def test_rows_count_by_their_queries_and_layers_stay_apart():
    first, own = one_hot([0] * T, T), one_hot(list(range(T)), T)
    short = around(torch.full((3, 3), 1 / 3), tokens=("x", "y", "z"))
    found = profile_heads([[around(first), across(own[None, :, :], WORDS)], [short]])
    assert [profile.layer for profile in found] == [
        "encoder.blocks.0.attention",
        "decoder.blocks.0.cross_attention",
    ]
    assert found[0].shares["first"] == pytest.approx((0.8 * 7 + 3 / 3) / 10)
    assert found[1].distance is None  # the same words on both sides, but another sequence


def test_a_profile_becomes_plain_values():
    profile = HeadProfile(
        layer="a",
        head=2,
        entropy=1.23456,
        evenness=0.5,
        distance=None,
        shares={"own": 1 / 3},
        kind="",
    )
    assert profile.as_values() == {
        "layer": "a",
        "head": 2,
        "kind": "",
        "entropy": 1.23456,
        "evenness": 0.5,
        "distance": None,
        "shares": {"own": 0.333333333},
    }


@pytest.mark.parametrize(
    ("token", "expected"),
    [("。", True), ("\n", True), ("[CLS]", True), ("don't", False), ("5", False), ("$", False)],
)
def test_delimiters_are_punctuation_spaces_and_special_tokens(token, expected):
    assert is_delimiter(token) == expected
