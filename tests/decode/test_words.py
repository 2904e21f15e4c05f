"""What must and must not be said: prefixes, forbidden words, stop texts, lengths."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from small_scorers import END, HashScorer

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.decode import Request, cut_at_stop, decode
from glassformer.errors import GlassformerError

ROWS, V, LENGTH = 5, 7, 12
EVERY = [
    DecodeConfig(max_length=LENGTH),
    DecodeConfig(method="sample", best=3, max_length=LENGTH),
    DecodeConfig(method="beam", best=3, max_length=LENGTH),
    DecodeConfig(method="beam", best=4, max_length=LENGTH, beam=BeamConfig(groups=2)),
]
each_method = pytest.mark.parametrize(
    "config", EVERY, ids=["greedy", "sample", "beam", "diverse beam"]
)


def contains(said, word):
    return any(said[at : at + len(word)] == tuple(word) for at in range(len(said) - len(word) + 1))


def answers(config, request, **settings):
    found = decode(HashScorer(ROWS, V, **settings), request, config)
    assert all(found)
    return found


@each_method
def test_rows_begin_with_their_prefix_and_are_scored_for_it(config):
    prefix = [(3, 1), (), (6,), (2, 2, 2, 5), (1,)]
    scorer = HashScorer(ROWS, V)
    for row, found in enumerate(decode(scorer, Request(end=END, prefix=prefix), config)):
        for h in found:
            assert h.tokens[: len(prefix[row])] == prefix[row]
            said = (*h.tokens, END) if h.reason == "end" else h.tokens
            torch.testing.assert_close(list(h.token_scores), scorer.log_probabilities(row, said))


def test_a_prefix_overrules_what_is_forbidden():
    request = Request(end=END, prefix=[(3, 1)] * ROWS, forbidden=[(3,)])
    for (found,) in answers(DecodeConfig(max_length=LENGTH), request):
        assert found.tokens[0] == 3
        assert 3 not in found.tokens[1:]


@each_method
def test_forbidden_words_are_never_said(config):
    free = answers(config, Request(end=END))
    likely = {h.tokens[at : at + 2] for row in free for h in row for at in range(len(h.tokens) - 1)}
    words = [*likely, (3, 4, 5), (6,)]
    for row in answers(config, Request(end=END, forbidden=words)):
        for hypothesis in row:
            assert not any(contains(hypothesis.tokens, word) for word in words)


def text_of(tokens):
    return "".join("abcdefg"[token] for token in tokens)


@each_method
def test_writing_stops_at_a_text_whichever_tokens_it_falls_into(config):
    free = answers(config, Request(end=END), end=-5.0)
    stops = tuple({text_of(row[0].tokens[2:5]) for row in free})
    stopped = answers(replace(config, stop=stops), Request(end=END, detokenize=text_of), end=-5.0)
    reasons = {h.reason for row in stopped for h in row}
    assert "stop" in reasons
    for row in stopped:
        for h in row:
            places = [text_of(h.tokens).find(stop) for stop in stops]
            ends = [at + len(stop) for at, stop in zip(places, stops, strict=True) if at >= 0]
            assert (h.reason == "stop") == bool(ends)
            assert all(end == len(h.tokens) for end in ends)


def test_a_text_is_cut_at_the_first_stop():
    assert cut_at_stop("a b\n\nc", ["\n\n", "c"]) == "a b"
    assert cut_at_stop("a b", ["x"]) == "a b"
    assert cut_at_stop("a b a c", ["b", "a"], 1) == "a "
    assert cut_at_stop("a b a c", ["b", "a"], 3) == "a b "


@each_method
def test_nothing_ends_before_its_least_length(config):
    for row in answers(replace(config, min_length=6), Request(end=END), end=5.0):
        assert all(len(h.tokens) >= 6 for h in row)


@each_method
def test_no_run_of_tokens_comes_twice_not_even_from_the_prompt(config):
    prompts = [(1, 2, 3), (), (4,), (5, 5), (6, 1, 6, 2)]
    config = replace(config, no_repeat=2)
    for row, found in enumerate(answers(config, Request(end=END, prompts=prompts), end=-5.0)):
        for h in found:
            said = (*prompts[row], *h.tokens)
            runs = list(pairwise(said))
            new = runs[max(0, len(prompts[row]) - 1) :]
            assert all(runs.index(run) == at for at, run in enumerate(runs) if run in new)


@each_method
def test_what_is_asked_of_a_row_stays_with_it_when_others_leave(config):
    """Rows leave at once, after three tokens and at the end; each is answered as if alone."""
    config = replace(config, repetition=1.6, no_repeat=2)
    asked = {
        "limits": [1, 11, 3, LENGTH, 9],
        "prefix": [(4,), (1, 2, 3, 4, 5), (), (2, 4, 6, 1, 3, 5), (6, 6)],
        "prompts": [(1, 2), (3,), (), (5, 1, 5, 2), (2, 6)],
        "seeds": [8, 6, 7, 5, 3],
    }
    if config.method == "beam":
        asked["required"] = [[], [(3, 3)], [(6,)], [], [(5, 2), (1,)]]
    together = answers(config, Request(end=END, **asked), end=-5.0)
    for row in range(ROWS):
        scorer = HashScorer(ROWS, V, end=-5.0)
        scorer.first = scorer.first[row : row + 1]
        own = {name: values[row : row + 1] for name, values in asked.items()}
        assert decode(scorer, Request(end=END, **own), config) == [together[row]]


@pytest.mark.parametrize(
    ("request_", "config", "complaint"),
    [
        (
            Request(end=END, prefix=[(1, 2, 3)] * 2, limits=[3, 2]),
            DecodeConfig(max_length=7),
            r"row 2: its prefix .* words need 3 tokens, but the limit is 2; require fewer words",
        ),
        (
            Request(end=END, required=[[(1,)], []]),
            DecodeConfig(),
            r"required words need beam search, but decode.method is greedy; set decode.method=beam",
        ),
        (Request(end=END, forbidden=[()]), DecodeConfig(), r"word has no tokens; leave it out"),
    ],
)
def test_what_cannot_be_asked_is_refused(request_, config, complaint):
    with pytest.raises(GlassformerError, match=complaint):
        decode(HashScorer(2, V), request_, config)


def test_a_request_is_for_every_row_or_none():
    with pytest.raises(ValueError, match="`prefix` has 3 rows, but the batch has 2; give 2 or"):
        decode(HashScorer(2, V), Request(end=END, prefix=[(1,)] * 3))
    with pytest.raises(ValueError, match="need `detokenize`, from tokens to text"):
        decode(HashScorer(2, V), Request(end=END), DecodeConfig(stop=("x",)))
