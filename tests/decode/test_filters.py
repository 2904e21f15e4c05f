"""Every filter and rule against its definition, token by token, and against Hugging Face's."""

import math

import pytest
import torch

from glassformer.config.decoding import SampleConfig
from glassformer.decode import filters
from glassformer.decode.filters import filter_scores
from glassformer.decode.rules import NoRepeat, Repetition
from glassformer.decode.topk import BLOCK, topk

B, W, V = 2, 3, 29


def lines(sharpness=2.0):
    return (sharpness * torch.randn(B, W, V)).log_softmax(-1)


def chances(line):
    total = sum(math.exp(x) for x in line)
    return [math.exp(x) / total for x in line]


def left_by_top_p(line, p):
    """Take tokens, the likeliest first, until they reach p."""
    share = chances(line)
    left, sum_ = set(), 0.0
    for token in sorted(range(len(line)), key=lambda t: -share[t]):
        if sum_ >= p:
            break
        left.add(token)
        sum_ += share[token]
    return left


def left_by_min_p(line, least):
    share = chances(line)
    return {token for token in range(len(line)) if share[token] >= least * max(share)}


def left_by_typical(line, p):
    """Take tokens, those nearest to the entropy in surprise first, until they reach p."""
    share = chances(line)
    entropy = -sum(x * math.log(x) for x in share if x > 0)
    strange = [abs(-math.log(x) - entropy) if x > 0 else math.inf for x in share]
    left, sum_ = set(), 0.0
    for token in sorted(range(len(line)), key=strange.__getitem__):
        if sum_ >= p:
            break
        left.add(token)
        sum_ += share[token]
    return left


DEFINITIONS = {
    "top_p": (left_by_top_p, [0.05, 0.5, 0.9, 0.99]),
    "min_p": (left_by_min_p, [0.02, 0.3, 1.0]),
    "typical": (left_by_typical, [0.05, 0.5, 0.9]),
}


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("sharpness", [0.5, 4.0])
def test_a_filter_leaves_what_its_definition_leaves(name, sharpness):
    definition, shares = DEFINITIONS[name]
    for share in shares:
        scores = lines(sharpness)
        found = getattr(filters, name)(scores, share)
        for row, line in zip(found.flatten(0, 1), scores.flatten(0, 1), strict=True):
            left = (row > -torch.inf).nonzero().flatten().tolist()
            assert set(left) == definition(line.tolist(), share)
            assert torch.equal(row[left], line[left])


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_filter_leaves_one_token_at_least_and_passes_over_what_is_out(name):
    scores = torch.full((1, 1, V), -torch.inf)
    scores[..., 7] = -3.0
    found = getattr(filters, name)(scores, 0.01)
    assert (found > -torch.inf).nonzero()[:, -1].tolist() == [7]


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.7},
        {"top_k": 5},
        {"top_p": 0.8},
        {"min_p": 0.1},
        {"typical": 0.6},
        {"temperature": 1.6, "top_k": 11, "top_p": 0.9, "min_p": 0.05, "typical": 0.7},
    ],
    ids=lambda settings: "+".join(settings),
)
def test_the_filters_together_leave_what_hugging_face_leaves(settings):
    process = pytest.importorskip("transformers.generation.logits_process")
    classes = {
        "temperature": process.TemperatureLogitsWarper,
        "top_k": process.TopKLogitsWarper,
        "top_p": process.TopPLogitsWarper,
        "min_p": process.MinPLogitsWarper,
        "typical": process.TypicalLogitsWarper,
    }
    scores = lines()
    theirs = scores.flatten(0, 1).clone()
    for name, value in settings.items():
        theirs = classes[name](value)(torch.zeros(len(theirs), 1, dtype=torch.long), theirs)
    values, tokens = filter_scores(scores, SampleConfig(**settings))
    ours = torch.full_like(scores, -torch.inf).scatter(-1, tokens.expand(values.shape), values)
    torch.testing.assert_close(ours.flatten(0, 1), theirs)


def test_rules_against_hugging_face():
    process = pytest.importorskip("transformers.generation.logits_process")
    said = torch.randint(5, (B, W, 11))
    scores, before = torch.randn(B, W, V), torch.zeros(B, 0, dtype=torch.long)
    flat = said.flatten(0, 1), scores.flatten(0, 1).clone()
    for rule, theirs in [
        (Repetition(1.7, before), process.RepetitionPenaltyLogitsProcessor(1.7)),
        (NoRepeat(1, before), process.NoRepeatNGramLogitsProcessor(1)),
        (NoRepeat(3, before), process.NoRepeatNGramLogitsProcessor(3)),
    ]:
        found = rule(scores, said).flatten(0, 1)
        torch.testing.assert_close(found, theirs(flat[0], flat[1].clone()))
        assert not torch.equal(found, flat[1])


@pytest.mark.parametrize("size", [1, 3])
def test_no_repeat_against_its_definition(size):
    """Prompts of different lengths among what was said."""
    before = torch.tensor([[-1, -1, 3], [2, 4, 2]])
    said = torch.randint(5, (B, W, 7))
    found = NoRepeat(size, before)(torch.zeros(B, W, V), said)
    for row in range(B):
        for branch in range(W):
            past = [*(t for t in before[row].tolist() if t >= 0), *said[row, branch].tolist()]
            runs = {tuple(past[at : at + size]) for at in range(len(past) - size + 1)}
            tail = past[len(past) - size + 1 :]
            out = [token for token in range(V) if (*tail, token) in runs]
            assert found[row, branch].isinf().nonzero().flatten().tolist() == out


def shares_that_add_up():
    """Scores whose likeliest tokens have exactly the share p together: (scores, p, how many)."""
    yield torch.tensor([0.5, 0.3, 0.1, 0.1]).log(), 0.8, 2
    for size in range(2, 40):
        for number in range(1, size):
            yield torch.zeros(size), number / size, number


def test_top_p_and_typical_keep_no_token_too_many_where_probabilities_add_up_exactly():
    for scores, p, number in shares_that_add_up():
        assert (filters.top_p(scores, p) > -torch.inf).sum() == number
        if len(set(scores.tolist())) == 1:  # all are as typical
            assert (filters.typical(scores, p) > -torch.inf).sum() == number


def test_repetition_divides_positive_scores_of_what_was_said_and_multiplies_negative_ones():
    scores = torch.randn(B, W, V)
    said = torch.randint(V, (B, W, 5))
    before = torch.tensor([[-1, 3], [7, 9]])
    found = Repetition(1.3, before)(scores, said)
    for row in range(B):
        for branch in range(W):
            past = {*before[row].tolist(), *said[row, branch].tolist()}
            line = scores[row, branch].tolist()
            expected = [
                x if token not in past else x / 1.3 if x > 0 else x * 1.3
                for token, x in enumerate(line)
            ]
            torch.testing.assert_close(found[row, branch], torch.tensor(expected))


@pytest.mark.parametrize("size", [2 * BLOCK, 7 * BLOCK, 7 * BLOCK + 1, 9 * BLOCK - 1, 50])
@pytest.mark.parametrize("k", [1, 3, 60])
def test_the_best_by_blocks_are_the_best(size, k):
    scores = torch.randn(5, size)
    scores[1, -1], scores[2, 0] = 9.0, 9.0
    scores[3] = -torch.inf
    scores[3, 5] = -2.0
    values, places = topk(scores, k)
    expected = scores.topk(min(k, size)).values
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(scores.gather(-1, places), expected)
