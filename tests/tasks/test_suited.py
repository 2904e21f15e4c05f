"""Defaults of a classifier follow from the number and the length of its texts."""

import pytest

from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.runs.request import TrainRequest
from glassformer.tasks.classify import suited
from glassformer.tasks.classify.suited import FEWEST, suited_to

SENTENCE = "a film with two plots " * 5


@pytest.fixture
def samples(tmp_path):
    """Training rows with the same text."""

    def written(text, rows):
        return Samples.write(
            tmp_path, (("train", {"text": text, "label": "a"}) for _ in range(rows))
        )

    return written


def resolved(samples, **options):
    given = {"job": "classify", "data": ("rows.csv",), "device": "cpu"}
    return TrainRequest(**given | options).resolve(samples)


def test_names_are_read_by_characters_longer_texts_by_words_and_sentences_by_both(samples):
    texts = {"names": "Bodensee", "sentences": SENTENCE, "paragraphs": SENTENCE * 4}
    found = {name: resolved(samples(text, FEWEST)) for name, text in texts.items()}
    kinds = {
        name: (one.data.tokenizer.kind, one.model.frontend.word_grams)
        for name, one in found.items()
    }
    assert kinds == {
        "names": ("characters", 0),
        "sentences": ("characters", 2),
        "paragraphs": ("words", 0),
    }
    for one in found.values():
        assert one.model.frontend.kind == "ngrams"
        assert (one.model.encoder.depth, one.train.refit) == (1, True)
        assert one.train.weights == "last"
    assert found["sentences"].data.tokenizer.lowercase
    assert found["sentences"].task.max_length > 5 * len(SENTENCE) / 2


@pytest.mark.parametrize(
    "setting",
    [
        "data.tokenizer.kind=bytes",
        "model.members=1",
        "model.frontend.kind=tokens",
        "task.max_length=64",
        "data.tokenizer.vocabulary=500",
    ],
)
def test_sentences_are_read_once_where_a_person_s_settings_leave_no_other_way(samples, setting):
    found = resolved(samples(SENTENCE, FEWEST), settings=(setting,))
    assert found.model.frontend.word_grams == 0


def test_a_length_of_one_s_own_may_be_too_long_for_the_last_weights(samples):
    names = samples("Bodensee", FEWEST)
    found = [resolved(names, **one).train for one in ({}, {"time": "1h"}, {"epochs": 99.0})]
    assert [one.weights for one in found] == ["last", "best", "best"]
    assert [one.patience for one in found] == [None, 10, 10]
    assert all(one.refit for one in found)


def test_settings_may_have_an_effect_only_on_what_suits_the_samples(samples):
    given = {"settings": ("model.frontend.grams=3", "model.frontend.word_grams=0")}
    request = TrainRequest(job="classify", data=("rows.csv",), device="cpu", **given)
    request.resolve(provisional=True)
    with pytest.raises(GlassformerError, match=r"frontend\.grams has no effect with .* = tokens"):
        request.resolve()
    frontend = request.resolve(samples(SENTENCE, FEWEST)).model.frontend
    assert (frontend.kind, frontend.grams, frontend.word_grams) == ("ngrams", 3, 0)
    with pytest.raises(GlassformerError, match=r"frontend\.grams has no effect with .* = tokens"):
        request.resolve(samples(SENTENCE, FEWEST - 1))


def test_many_sentences_are_read_once(samples, monkeypatch):
    monkeypatch.setattr(suited, "FEW", len(SENTENCE) * FEWEST - 1)
    found = resolved(samples(SENTENCE, FEWEST))
    assert (found.data.tokenizer.kind, found.model.frontend.word_grams) == ("words", 0)
    assert found.model.members == 2


def test_long_texts_are_read_from_both_ends_in_fewer_epochs(samples):
    reviews = resolved(samples("a film with two plots " * 300, FEWEST))
    assert (reviews.task.long, reviews.train.epochs) == ("both", 3.0)
    assert reviews.task.vectors == "ppmi"
    assert (reviews.train.refit, reviews.train.weights) == (None, "best")
    assert resolved(samples(SENTENCE, FEWEST)).task.long == "head"


def test_the_fewer_texts_the_more_members(samples):
    texts = {4: SENTENCE, 2: "a film " * 300, 1: "a film " * 1000}
    found = {count: resolved(samples(text, FEWEST)).model.members for count, text in texts.items()}
    assert found == {4: 4, 2: 2, 1: 1}


def test_fewer_rows_and_accelerators_keep_the_general_defaults(samples):
    few = samples("Bodensee", FEWEST - 1)
    assert resolved(few) == resolved(None)
    assert suited_to(samples("Bodensee", FEWEST), True, {}) == {}


def test_far_more_text_than_was_measured_keeps_them_too(samples, monkeypatch):
    texts = samples("a film with two plots", FEWEST)
    assert suited_to(texts, False, {})
    monkeypatch.setattr(suited, "MOST", 20 * FEWEST)
    assert suited_to(texts, False, {}) == {}


def test_what_a_person_sets_wins(samples):
    found = resolved(
        samples("Bodensee", FEWEST),
        steps=7,
        settings=("data.tokenizer.kind=bpe", "model.encoder.dropout=0.3"),
    )
    assert (found.train.steps, found.train.epochs) == (7, None)
    assert (found.model.encoder.depth, found.model.encoder.dropout) == (1, 0.3)
    assert found.data.tokenizer.kind == "bpe"


def test_a_size_that_is_named_keeps_the_general_defaults(samples):
    assert resolved(samples("Bodensee", FEWEST), size="tiny") == resolved(None, size="tiny")


def test_pretraining_on_demand_keeps_a_model_that_can_fill_gaps(samples):
    names = samples("Bodensee", FEWEST)
    for options in ({"settings": ("pretrain=yes",)}, {"unlabelled": ("texts.csv",)}):
        assert resolved(names, **options).model.frontend.kind == "tokens"


def test_texts_without_labels_that_only_have_to_agree_keep_the_usual_model(samples):
    given = {"unlabelled": ("texts.csv",), "pretrain": False}
    agreeing = ("train.regularise.r_drop=1",)
    found = resolved(samples("Bodensee", FEWEST), settings=agreeing, **given)
    assert found.model.frontend.kind == "ngrams"
