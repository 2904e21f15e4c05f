"""Explained translations: words of the source, words that were written, and the beam."""

import math

import pytest
import torch
from small_pairs import pair_job

from glassformer.config.values import merge_values
from glassformer.errors import GlassformerError
from glassformer.explaining.methods import METHODS, usable_methods
from glassformer.explaining.watching import watching
from glassformer.tasks.translate.explainer import TranslateExplainer
from glassformer.tasks.translate.predictor import TranslatePredictor

PAIRS = [
    ("what a red film", "so ein roter Film"),
    ("an old red cat", "eine alte rote Katze"),
    ("what a wet dry cat", "so eine Katze"),
]
NOT_EMPTY = ("decode.min_length=5", "decode.max_length=9")  # whatever the model has not learned
KINDS = ("attention", "gru", "tcn")


def explained(folder, pairs=PAIRS, kind="attention", **settings):
    stacks = (
        {name: {"kind": kind} for name in ("encoder", "decoder")} if kind != "attention" else {}
    )
    values = {"model": stacks, "data": {"tokenizer": {"kind": "characters"}}}
    job = pair_job(folder, pairs, **merge_values(values, settings))
    torch.manual_seed(3)
    return TranslateExplainer(job), job.model().eval()


# What is scored


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_text_that_is_left(tmp_path, kind):
    explainer, model = explained(tmp_path, kind=kind)
    subject = explainer.subject(model, "what a red film", target="so ein Film", unit="word")
    kept = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 1]], dtype=torch.bool)
    found = subject.scores_of(kept)
    assert torch.allclose(found[0], subject.scores(model, copies=2)[1], atol=1e-4)
    shorter = explainer.subject(model, "what a film", target="so ein Film", unit="word")
    assert torch.allclose(found[1], shorter.scores(model)[0], atol=1e-4)
    assert not torch.allclose(found[0], found[1], atol=1e-3)


def test_a_score_is_the_log_odds_of_a_whole_word(tmp_path):
    explainer, model = explained(tmp_path)
    subject = explainer.configured(set=NOT_EMPTY).subject(model, "what a red film")
    probabilities = torch.tensor([one.probability for one in subject.targets])
    assert torch.allclose(subject.scores(model)[0], probabilities.logit(), atol=1e-3)
    predictor = TranslatePredictor(explainer.task).configured(set=NOT_EMPTY)
    [prediction] = predictor.predict(model, ["what a red film"])
    ends = [t["log_probability"] for t in prediction.details["tokens"] if t["piece"] == "<end>"]
    every = sum(token["log_probability"] for token in prediction.details["tokens"]) - sum(ends)
    blanks = len(prediction.details["tokens"]) - len(ends) - int(subject.table.sum())
    assert subject.answer == prediction.text
    assert blanks or math.log(probabilities.prod()) == pytest.approx(every, abs=1e-3)


def test_alternatives_leave_a_word_at_any_of_its_tokens(tmp_path):
    explainer, model = explained(tmp_path)
    subject = explainer.subject(model, "what a red film", target="so ein")
    for one in subject.targets:
        probabilities = [probability for _, probability in one.alternatives]
        assert probabilities == sorted(probabilities, reverse=True)
        assert one.text.strip() not in dict(one.alternatives)
        assert len(one.alternatives) == 4
        assert sum(probabilities) + one.probability < 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_sees_every_kind_of_model(tmp_path, kind):
    explainer, model = explained(tmp_path, kind=kind)
    subject = explainer.subject(model, "what a red film", target="so ein Film", unit="word")
    for name in usable_methods(subject):
        found = METHODS[name].influence(subject)
        assert found.shape == (len(subject.targets), 4), name
        assert found.isfinite().all()
        assert found.abs().sum() > 0


def maps_of(subject):
    with watching(subject.model) as (watched, maps):
        subject.scores(watched)
        found = {one.name: one for one in subject.attention_of(maps)}
    assert all(one.weights.shape[1:] == (len(one.queries), len(one.keys)) for one in found.values())
    return found


def test_attention_is_labelled_with_what_reads_and_what_is_read(tmp_path):
    explainer, model = explained(tmp_path)
    found = maps_of(explainer.subject(model, "what a red film", target="so", unit="token"))
    assert len(found) == 3
    across = found["decoder.blocks.0.cross_attention"]
    assert across.queries == ("s", "o")
    assert "".join(across.keys) == "what a red film<end>"
    assert found["decoder.blocks.0.attention"].keys == ("<start>", "s")
    assert found["encoder.blocks.0.attention"].queries == across.keys


@pytest.mark.parametrize(
    ("kind", "name"), [("attention", "decoder.blocks.0."), ("gru", "decoder.")]
)
def test_words_attend_to_words(tmp_path, kind, name):
    explainer, model = explained(tmp_path, kind=kind)
    text, target = "what a red film", "so ein Film"
    words = maps_of(explainer.subject(model, text, target=target, unit="word"))
    tokens = maps_of(explainer.subject(model, text, target=target, unit="token"))
    by_word, by_token = (found[f"{name}cross_attention"] for found in (words, tokens))
    assert by_word.queries == ("so", " ein", " Film")
    assert by_word.keys == ("what ", "a ", "red ", "film", "<end>")
    assert torch.allclose(by_word.weights.sum(-1), torch.ones(()))
    so, red = by_token.weights[:, :2], slice(6, 10)  # with the blank before it
    assert torch.allclose(by_word.weights[:, 0, 2], so[..., red].sum(-1).mean(-1), atol=1e-6)


# The beam


def test_the_branches_that_are_kept_spell_the_translation(tmp_path):
    explainer, model = explained(tmp_path)
    settings = ("decode.method=beam", "decode.beam.width=3", *NOT_EMPTY)
    subject = explainer.configured(set=settings).subject(model, "what a red film")
    kept = [one.token for step in subject.beam for one in step if one.kept]
    assert "".join(kept).removesuffix("<end>").strip() == subject.answer
    assert all(len(step) >= 3 for step in subject.beam)
    assert not explainer.subject(model, "what a red film", target="so").beam


def test_greedy_decoding_has_no_beam(tmp_path):
    explainer, model = explained(tmp_path)
    greedy = explainer.configured(set=("decode.method=greedy", *NOT_EMPTY))
    assert len(greedy.subject(model, "what a red film").beam) == 0


# Inputs


def test_tags_stay_and_are_no_pieces(tmp_path):
    pairs = [
        {"source": source, "target": target, "to": to}
        for (source, target), to in zip(PAIRS, ("de", "fr", "de"), strict=True)
    ]
    explainer, model = explained(tmp_path, pairs)
    subject = explainer.subject(model, "<fr> what a red film", target="so ein", unit="word")
    other = explainer.subject(model, "<de> what a red film", target="so ein", unit="word")
    assert "".join(subject.pieces) == "what a red film"
    assert subject.piece_of[0, 0] == subject.piece_of[0, -1] == -1
    nothing = torch.zeros(1, 4, dtype=torch.bool)
    assert not torch.allclose(subject.scores_of(nothing), other.scores_of(nothing))
    with pytest.raises(GlassformerError, match="has no target language"):
        explainer.subject(model, "what a red film")


def test_chinese_is_explained_by_its_characters(tmp_path):
    explainer, model = explained(
        tmp_path, [("早上好世界", "good morning"), ("你好世界吗", "hello")]
    )
    subject = explainer.subject(model, "早上好世界", target="good morning")
    assert subject.pieces == ("早", "上", "好", "世", "界")
    assert [one.text for one in subject.targets] == ["good", " morning"]


def test_a_single_word_is_explained_by_its_letters_and_two_by_words(tmp_path):
    explainer, model = explained(tmp_path)
    assert explainer.subject(model, "red", target="so").pieces == ("r", "e", "d")
    assert explainer.subject(model, "red film", target="so").pieces == ("red ", "film")


def test_what_is_not_read_has_no_pieces(tmp_path):
    explainer, model = explained(tmp_path, task={"max_length": 10})
    subject = explainer.subject(model, "what a red film", target="so", unit="word")
    assert [piece.strip() for piece in subject.pieces] == ["what", "a", "red"]
    assert subject.notes == ("The text is too long; words at its end that are not read: 1.",)


def test_texts_that_cannot_be_explained_are_refused(tmp_path):
    explainer, model = explained(tmp_path)
    with pytest.raises(GlassformerError, match="no word to explain; give a text"):
        explainer.subject(model, " ")
    with pytest.raises(GlassformerError, match="cannot write '早': some of it is in no training"):
        explainer.subject(model, "what", target="早")
    with pytest.raises(GlassformerError, match="cannot write '': it is empty"):
        explainer.subject(model, "what", target="")
