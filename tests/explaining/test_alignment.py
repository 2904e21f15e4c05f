"""Alignment: the words of an answer find the words of the source they came from."""

import json

import numpy as np
import pytest
import torch
from small_translator import sentences, translation, translator

from glassformer.config import AttentionConfig, ModelConfig, StackConfig
from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.explaining.alignment import (
    Alignment,
    align_words,
    as_written,
    cross_attention_weights,
    word_table,
)
from glassformer.models.build import build_transformer
from glassformer.runs.api import align
from glassformer.runs.run import Run

V, SOURCE, DECODER_INPUT = 13, (5, 7, 4, 11, 3), (2, 9, 6)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(translator(tmp_path_factory))


def small_model(decoder="attention", depth=2):
    stack = {"dim": 12, "dropout": 0.0, "attention": AttentionConfig(heads=3)}
    config = ModelConfig(
        encoder=StackConfig(depth=1, **stack),
        decoder=StackConfig(kind=decoder, depth=depth, **stack),
    )
    return build_transformer(config, vocabulary=V).eval()


def characters(*texts):
    return Tokenizer.train("characters", texts, vocabulary=100)


# A trained translator, whose truth is known


def test_words_find_the_words_they_translate(run):
    right = total = 0
    sources = sentences(23, seed=5)
    for source in sources:
        found = align(run, source)
        assert found.source == tuple(source.split())
        if found.target == tuple(translation(source).split()):
            total += len(found.target)
            right += sum(i + j == len(found.source) - 1 for i, j in found.links)
    assert total > 50
    assert right > 0.9 * total


def test_leaving_words_out_finds_the_words_they_translate(run):
    right = total = 0
    for source in sentences(7, seed=5):
        found = run.explain(source, method="occlusion", unit="word")
        if found.answer == translation(source):
            best = found.influence.argmax(1).tolist()
            right += sum(i + j == len(found.pieces) - 1 for i, j in enumerate(best))
            total += len(best)
    assert total > 15
    assert right > 0.9 * total


def test_an_answer_that_was_asked_for_otherwise_is_aligned_too(run):
    found = align(run, "red old cat", prefix="neu")
    assert found.target[0] == "neu"
    assert found.weights.shape == (len(found.target), 3)


def test_what_a_word_took_is_at_most_all(run):
    found = align(run, "wet 早 cat red")
    assert found.source == ("wet", "早", "cat", "red")
    assert (found.weights >= 0).all()
    assert (found.weights.sum(-1) <= 1 + 1e-5).all()


def test_the_model_itself_is_left_alone(run):
    before = run.predict("red old cat")
    align(run, "red old cat")
    hooked = [m for m in run.model.modules() if m._forward_hooks or m._forward_pre_hooks]
    assert not hooked
    assert run.predict("red old cat") == before


def test_words_stand_as_they_were_typed_not_as_they_are_read(run, monkeypatch):
    monkeypatch.setattr(run.task.pair.source, "lowercase", True)
    assert align(run, "RED old Cat").source == ("RED", "old", "Cat")


def test_words_that_cannot_be_found_as_typed_stay_as_they_are_read():
    assert as_written(["ﬁ", "?", "b"], "A ? B", "a x b") == ("ﬁ", "?", "B")
    assert as_written(["i", "x"], "İ X", "i\u0307 x") == ("i", "x")  # one character became two


@pytest.mark.parametrize("text", ["", "  "])
def test_nothing_is_aligned_with_nothing(run, text):
    found = align(run, text)
    assert (found.source, found.target, found.links) == ((), (), [])


# What a decoder looked at


def test_every_layer_and_head_shares_one_look_among_the_source():
    model = small_model(depth=3)
    looks = cross_attention_weights(model, SOURCE, DECODER_INPUT)
    heads = model.decoder.blocks[0].cross_attention.heads
    assert looks.shape == (3, heads, len(DECODER_INPUT), len(SOURCE))
    assert looks.sum(-1) == pytest.approx(np.ones((3, heads, len(DECODER_INPUT))), abs=1e-5)


@pytest.mark.parametrize("decoder", ["attention", "gru", "lstm", "tcn"])
def test_what_is_said_later_changes_no_look(decoder):
    model = small_model(decoder)
    first = cross_attention_weights(model, SOURCE, DECODER_INPUT)
    other = cross_attention_weights(model, SOURCE, (*DECODER_INPUT[:-1], 8))
    assert torch.allclose(first[:, :, :-1], other[:, :, :-1], atol=1e-6)


def test_the_looks_of_a_gru_are_those_its_context_is_made_with():
    model, contexts = small_model("gru", depth=1), []
    model.decoder.layers.register_forward_pre_hook(lambda _, given: contexts.append(given[0]))
    tokens = torch.tensor([SOURCE]), torch.tensor([DECODER_INPUT])
    layouts = {"source": Layout.full(1, len(SOURCE)), "target": Layout.full(1, len(DECODER_INPUT))}
    with torch.no_grad():
        model(*tokens, **layouts)
        [memory] = model.encode(tokens[0], layouts["source"])
    looks = cross_attention_weights(model, SOURCE, DECODER_INPUT)
    taken = torch.cat(contexts[: len(DECODER_INPUT)], 1)[0, :, model.decoder.dim :]  # (T, E)
    assert looks.shape == (1, 1, len(DECODER_INPUT), len(SOURCE))
    assert torch.allclose(looks[0, 0] @ memory.v[0, 0], taken, atol=1e-5)


# From tokens to words


def test_a_word_is_taken_whole_and_looks_with_all_its_tokens():
    tokens = characters("ab c", "x yz")
    source, target = (
        [*tokens.encode([text])[0].tolist(), Tokenizer.end] for text in ("ab c", "x yz")
    )
    looks = torch.tensor(
        [  # a    b    ' '  c    end
            [0.1, 0.2, 0.3, 0.1, 0.3],  # x
            [0.6, 0.2, 0.1, 0.1, 0.0],  # ' '
            [0.0, 0.2, 0.4, 0.4, 0.0],  # y
            [0.0, 0.2, 0.1, 0.1, 0.6],  # z
            [0.0, 0.0, 0.0, 0.0, 1.0],  # end
        ]
    )
    found = align_words(tokens, tokens, source, target, looks)
    assert (found.source, found.target) == (("ab", "c"), ("x", "yz"))
    truth = [[0.3, 0.4], [(0.8 + 0.2 + 0.2) / 3, (0.2 + 0.8 + 0.2) / 3]]
    assert torch.allclose(found.weights, torch.tensor(truth))
    assert found.links == [(1, 0), (0, 1)]


def test_a_single_word_falls_into_its_tokens():
    tokens = characters("cat dog")
    [ids] = tokens.encode(["cat"])
    table, words = word_table(tokens, ids.tolist())
    assert words == ("c", "a", "t")
    assert table.equal(torch.eye(3))


def test_marks_tags_and_lone_blanks_are_no_words():
    tokens = characters("a  b")
    tag = tokens.size + 1
    ids = [tag, *tokens.encode(["a  b"])[0].tolist(), Tokenizer.end]
    table, words = word_table(tokens, ids)
    assert words == ("a", "b")
    assert table[:, [0, -1]].sum() == 0


def test_an_unknown_character_is_a_word_of_its_own():
    tokens = characters("a b")
    table, words = word_table(tokens, [*tokens.encode(["a 猫 b"])[0].tolist(), Tokenizer.end])
    assert words == ("a", "\N{REPLACEMENT CHARACTER}", "b")
    assert table.shape == (3, 6)


# The record


def test_an_alignment_goes_into_json():
    found = Alignment(("早", "好"), ("good", "morning"), torch.tensor([[0.125, 0.75], [0.5, 0.25]]))
    assert json.loads(json.dumps(found.as_values())) == {
        "source": ["早", "好"],
        "target": ["good", "morning"],
        "weights": [[0.125, 0.75], [0.5, 0.25]],
        "links": [[1, 0], [0, 1]],
    }
