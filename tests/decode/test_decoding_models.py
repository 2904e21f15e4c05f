"""Decoding with models: batch = one by one, scores = the model's, and what ends early leaves."""

from dataclasses import replace

import pytest
import torch
from small_models import (
    END,
    FIRST,
    H,
    continued,
    encoder_decoder,
    language_model,
    prompts,
    sources,
    translated,
)

from glassformer.config import AttentionConfig
from glassformer.config.decoding import (
    METHOD_NAMES,
    PENALTY_NAMES,
    BeamConfig,
    DecodeConfig,
)
from glassformer.core.layout import Layout
from glassformer.decode import METHODS, Request, decode
from glassformer.decode.penalties import PENALTIES
from glassformer.errors import GlassformerError
from glassformer.models.incremental import continuing, translating

LENGTHS, LIMITS, SEEDS = (5, 2, 7, 3), [4, 8, 6, 8], [3, 1, 4, 1]
EVERY = [
    DecodeConfig(max_length=8),
    DecodeConfig(method="sample", best=2, max_length=8),
    DecodeConfig(method="beam", best=3, max_length=8),
    DecodeConfig(method="beam", best=2, max_length=8, beam=BeamConfig(penalty="gnmt", groups=2)),
]
each_method = pytest.mark.parametrize(
    "config", EVERY, ids=["greedy", "sample", "beam", "diverse beam"]
)


def asked(row=slice(None)):
    """Of all rows, which leave the batch at different steps, or of one alone."""
    rows = row if isinstance(row, slice) else slice(row, row + 1)
    return Request(end=END, seeds=SEEDS[rows], limits=LIMITS[rows])


def assert_same(together, alone):
    """The same tokens; log-probabilities within 1e-4."""
    for ours, theirs in zip(together, alone, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        for mine, yours in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine.token_scores, yours.token_scores, atol=1e-4, rtol=0)


def own_scores(lines, hypothesis):
    said = torch.tensor([*hypothesis.tokens, END][: len(hypothesis.token_scores)])
    return lines[torch.arange(len(said)), said].tolist()


@each_method
def test_a_batch_is_translated_as_one_by_one_and_scored_by_the_model(config):
    model, source = encoder_decoder(), sources(LENGTHS)
    together = decode(translating(model, *source, first=FIRST), asked(), config)
    alone = []
    for row, length in enumerate(LENGTHS):
        own = source[0][row : row + 1, :length], Layout.full(1, length)
        scorer = translating(model, *own, first=FIRST)
        alone += decode(scorer, asked(row), config)
    assert_same(together, alone)
    for row, found in enumerate(together):
        for h in found:
            said = [*h.tokens, END][: len(h.token_scores)]
            lines = translated(model, source, [row], [said[:-1]])[0]
            torch.testing.assert_close(
                list(h.token_scores), own_scores(lines, h), atol=1e-4, rtol=0
            )


@each_method
def test_prompts_are_continued_as_one_by_one_and_scored_by_the_model(config):
    model, texts = language_model(), prompts(LENGTHS)
    together = decode(continuing(model, texts), asked(), config)
    alone = []
    for row, text in enumerate(texts):
        alone += decode(continuing(model, [text]), asked(row), config)
    assert_same(together, alone)
    for row, found in enumerate(together):
        for h in found:
            said = [*h.tokens, END][: len(h.token_scores)]
            lines = continued(model, texts, [row], [said[:-1]])[0]
            torch.testing.assert_close(
                list(h.token_scores), own_scores(lines, h), atol=1e-4, rtol=0
            )


def test_writing_ends_where_learned_positions_do():
    model = language_model(position="learned")
    config = DecodeConfig(max_length=99, min_length=99)
    (found,) = decode(continuing(model, [[3] * 5]), Request(end=END), config)[0]
    assert len(found.tokens) == 32 - 4
    assert found.reason == "length"


@pytest.mark.parametrize("config", [EVERY[0], EVERY[2]], ids=["greedy", "beam"])
@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_a_neighbour_s_longer_prompt_does_not_shorten_an_answer(kind, config):
    attention = AttentionConfig(heads=H, kind=kind)
    model, texts = language_model(position="learned", attention=attention), prompts((29, 2, 23))
    config, scorer = replace(config, max_length=99), continuing(model, texts)
    scorer.compact_below = 0.0  # rows that have ended stay to the last step
    together, alone = decode(scorer, Request(end=-1, seeds=SEEDS[:3]), config), []
    for text, seed in zip(texts, SEEDS, strict=False):
        alone += decode(continuing(model, [text]), Request(end=-1, seeds=[seed]), config)
    assert_same(together, alone)
    assert [len(found[0].tokens) for found in together] == [32 - 28, 32 - 1, 32 - 22]


def test_a_prompt_that_fills_all_positions_is_refused():
    scorer = continuing(language_model(position="learned"), [[3] * 33])
    with pytest.raises(
        GlassformerError, match="row 1: the prompt leaves no positions for an answer; shorten it"
    ):
        decode(scorer, Request(end=END))


def test_the_literal_lists_name_exactly_what_there_is():
    assert sorted(METHOD_NAMES) == sorted(METHODS)
    assert sorted(PENALTY_NAMES) == sorted(PENALTIES)
