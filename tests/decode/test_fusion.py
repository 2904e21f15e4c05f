"""Shallow fusion: searches with a language model agree with exhaustive search."""

from itertools import product

import pytest
import torch
from small_scorers import END, HashScorer, drawn
from test_beam import beam_of, divisor, everything_sayable
from test_ctc import BLANK, LENGTHS, all_texts, log_probs

from glassformer.decode import Request, decode
from glassformer.decode.ctc import ctc_prefix_beam
from glassformer.decode.fusion import Fusion

VOCABULARY = 4


def spelled(tokens, sizes):
    """A language model whose next tokens depend on all before them."""
    prefixes = [row[:size] for row, size in zip(tokens.tolist(), sizes.tolist(), strict=True)]
    lines = [drawn((77, *prefix), VOCABULARY, 1.5, 0.0) for prefix in prefixes]
    return torch.tensor(lines).reshape(-1, VOCABULARY).log_softmax(-1)


def log_probability(text, end):
    """By the definition, one token after another."""
    total = 0.0
    for size, token in enumerate((*text, end)):
        scores = spelled(torch.tensor([text], dtype=torch.long), torch.tensor([size]))
        total += float(scores[0, token])
    return total


def test_the_score_of_a_text_is_the_sum_over_its_tokens_and_its_end():
    texts = [(1, 2, 3), (), (2,), (3, 3)]
    found = Fusion(spelled, 0.7, END).log_probabilities(texts, torch.device("cpu"))
    assert found == pytest.approx([log_probability(text, END) for text in texts], abs=1e-5)


@pytest.mark.parametrize("weight", [0.4, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_prefix_beam_with_a_language_model_is_exhaustive_search(seed, weight):
    scores = log_probs(seed, vocab_size=VOCABULARY)
    end = 0  # here an ordinary token as well
    fusion = Fusion(spelled, weight, end)
    found = ctc_prefix_beam(scores, LENGTHS, blank=BLANK, width=243, fusion=fusion)
    for row, length in enumerate(LENGTHS):
        by_ctc = all_texts(scores[row], length)
        right = {text: x + weight * log_probability(text, end) for text, x in by_ctc.items()}
        assert {one.tokens: one.score for one in found[row]} == pytest.approx(right, abs=1e-4)
        assert {one.tokens: one.log_probability for one in found[row]} == pytest.approx(
            by_ctc, abs=1e-4
        )
        ranked = [one.score for one in found[row]]
        assert ranked == sorted(ranked, reverse=True)


def test_a_narrow_prefix_beam_keeps_what_the_language_model_prefers():
    scores = torch.full((1, 2, VOCABULARY), 0.25).log()  # the sound says nothing
    fusion = Fusion(spelled, 5.0, END)
    [[best, *_]] = ctc_prefix_beam(scores, [2], blank=BLANK, width=3, fusion=fusion)
    texts = [text for size in range(3) for text in product((0, 2, 3), repeat=size)]
    by_ctc = all_texts(scores[0], 2)
    right = max(
        (text for text in texts if text in by_ctc),
        key=lambda text: by_ctc[text] + 5.0 * log_probability(text, END),
    )
    assert best.tokens == right


def test_rows_of_a_batch_are_fused_as_each_alone():
    scores, fusion = log_probs(5, vocab_size=VOCABULARY), Fusion(spelled, 0.8, END)
    together = ctc_prefix_beam(scores, LENGTHS, blank=BLANK, width=3, fusion=fusion)
    for row, length in enumerate(LENGTHS):
        alone = scores[row : row + 1, :length]
        [single] = ctc_prefix_beam(alone, [length], blank=BLANK, width=3, fusion=fusion)
        assert [one.tokens for one in single] == [one.tokens for one in together[row]]


@pytest.mark.parametrize("penalty", ["none", "average"])
def test_a_wide_beam_with_a_language_model_is_exhaustive_search(penalty):
    limit, rows, weight = 4, 2, 0.6
    scorer = HashScorer(rows, VOCABULARY)
    request = Request(end=END, fusion=Fusion(spelled, weight, END))
    config = beam_of(VOCABULARY**limit, best=5, length=limit, penalty=penalty, strength=1.0)
    for row, found in enumerate(decode(scorer, request, config)):
        every = []
        for said, total in everything_sayable(scorer, row, limit, VOCABULARY):
            language = log_probability(said[:-1], said[-1])
            every.append(((total + weight * language) / divisor(len(said), penalty, 1.0), total))
        expected = sorted(every, reverse=True)[:5]
        assert [one.score for one in found] == pytest.approx([x for x, _ in expected], abs=1e-4)
        own = [one.log_probability for one in found]  # stays the model's
        assert own == pytest.approx([x for _, x in expected], abs=1e-4)
