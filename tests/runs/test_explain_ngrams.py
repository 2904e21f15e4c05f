"""Classifiers with n-grams explained: in log-odds of the whole model, and all of the text."""

import copy
import json
import pickle
import random

import numpy as np
import pytest
import torch

import glassformer
from glassformer.explaining.faithfulness import CHANCE, choose_unmeasured
from glassformer.explaining.methods import METHODS, usable_methods
from glassformer.tasks.classify import explainer
from glassformer.tasks.classify.blend import Blend
from glassformer.tasks.classify.linear import logits_of
from glassformer.tasks.classify.stored_baseline import StoredBaseline

TINY = {"model.encoder.dim": 8, "model.encoder.depth": 1, "model.encoder.attention.heads": 2}
WORDS = {"bad": ("dull", "weak"), "good": ("great", "lovely"), "odd": ("strange", "weird")}
OUTSIDE = {"ngrams", "occlusion", "occlusion_of_spans"}


def reviews(names, *, several=False, count=61):
    rng = random.Random(0)
    for number in range(count):
        label = names[number % len(names)]
        words = [*rng.choices(("the", "film", "dog", "town"), k=5), *rng.choices(WORDS[label], k=2)]
        labels = [label, *(["dog"] if "dog" in words else [])]
        yield {"text": " ".join(words), "label": labels if several else label}


def learn(folder, rows, **settings):
    settings = {"model.ngrams": "yes", **TINY, **settings}
    options = {"steps": 2, "pretrain": False, "device": "cpu", "quiet": True}
    return glassformer.train("classify", rows, run=folder / "run", set=settings, **options)


def blended(run, model, ngrams):
    """The same run with other weights of its parts."""
    loaded = glassformer.load(run.folder.path)
    loaded.task.blend = Blend(model=model, ngrams=ngrams, kept=True, sentence="")
    return loaded


def with_all_and_none(stored, text):
    """What n-grams say of a text, and of one without any."""
    record, bias = stored.record, stored.bias[None].astype(float)
    none = logits_of(bias, record.classes, record.multi_label) / record.temperature
    return np.concatenate([stored.logits([text]), none])


@pytest.fixture(scope="module", params=["two", "three", "several"])
def run(request, tmp_path_factory):
    names = ("bad", "good") if request.param == "two" else ("bad", "good", "odd")
    rows = list(reviews(names, several=request.param == "several"))
    return learn(tmp_path_factory.mktemp("run"), rows)


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    rows = list(reviews(("bad", "good")))
    return learn(tmp_path_factory.mktemp("short"), rows, **{"task.max_length": 7})


@pytest.mark.parametrize("weight", [0.7, 2.3])
def test_an_ngram_that_stands_alone_has_the_influence_that_occlusion_finds(run, weight):
    subject = blended(run, 0.0, weight).explainer.job.subject(run.model, "lovely", unit="word")
    found, expected = (METHODS[name].influence(subject) for name in ("ngrams", "occlusion"))
    assert found.shape[1] == 1
    assert found.abs().max() > 0.1
    assert torch.allclose(found, expected, rtol=0.02, atol=0.02)  # an empty text is a space


def test_the_influence_of_ngrams_is_on_the_log_odds_of_both_parts_together(run):
    both = blended(run, 0.9, 0.6)
    subject = both.explainer.job.subject(run.model, "lovely", unit="word")
    stored, network = both.task.stored, subject.whole.without_ngrams().logits
    logits = 0.9 * network + 0.6 * with_all_and_none(stored, "lovely")
    expected = subject._log_odds(torch.from_numpy(logits))
    found = METHODS["ngrams"].influence(subject)[:, 0]
    assert torch.allclose(found.double(), expected[0] - expected[1], atol=1e-4)


def test_the_influences_of_ngrams_add_up_where_scores_do(run):
    if run.task.stored.record.classes == 3 and not run.task.labels.multi:
        pytest.skip("three labels that exclude each other share a sum")
    text = "the lovely dog was great in the town"
    subject = blended(run, 0.0, 0.7).explainer.job.subject(run.model, text)
    logits = 0.7 * with_all_and_none(run.task.stored, text)
    scores = subject._log_odds(torch.from_numpy(logits))
    found = METHODS["ngrams"].influence(subject).sum(1)
    assert torch.allclose(found.double(), scores[0] - scores[1], atol=1e-4)


def test_words_that_only_ngrams_read_are_pieces_as_well(short):
    text = "the town the film the dog the town the film was lovely"
    found = blended(short, 0.8, 0.9).explain(text, method="occlusion")
    assert "".join(found.pieces) == text
    good = [target.text for target in found.targets].index("good")
    assert found.influence[good].argmax() == len(found.pieces) - 1
    note = "The text is too long for the network; words that only n-grams read: "
    assert found.notes[0].startswith(note)
    for method in METHODS:
        found = blended(short, 0.8, 0.9).explain(text, method=method)
        assert found.influence.shape == (2, len(found.pieces))
        assert bool(found.influence[good, -1]) == (method in OUTSIDE)
    alone = blended(short, 0.0, 1.0).explain(text, method="ngrams")
    assert "".join(alone.pieces) == text
    assert [note for note in alone.notes if "too long" in note] == []


def test_of_very_long_texts_the_beginning_is_explained(short, monkeypatch):
    monkeypatch.setattr(explainer, "MOST_PIECES", 9)
    monkeypatch.setattr(explainer, "LONGEST_EXAMPLE", 11)
    text = "the town the film the dog the town the film was lovely"
    both = blended(short, 0.8, 0.9)
    found = both.explain(text, method="occlusion")
    assert "".join(found.pieces) == "the town the film the dog the town the "
    assert found.notes[1] == "Words after the first 9 that are not shown: 3."
    assert found.influence.abs().sum() > 0
    job = both.explainer.job
    assert job.example(text) == "the town th"
    job.task.blend = None
    assert job.example(text) == text


def test_only_methods_that_see_ngrams_are_chosen_and_ranked_where_these_alone_answer(
    short,
):
    alone = blended(short, 0.0, 1.0)
    subject = alone.explainer.job.subject(short.model, "the lovely dog was great")
    assert set(usable_methods(subject)) == OUTSIDE
    assert choose_unmeasured(subject) == "occlusion"
    long = alone.explainer.job.subject(short.model, "the lovely dog was great " * 200)
    assert choose_unmeasured(long) == "ngrams"
    found = alone.explainer.measure(list(reviews(("bad", "good"), count=3)))
    assert set(found.found.methods) == OUTSIDE | {CHANCE}
    assert "methods that look inside the network are left out" in repr(found)
    both = blended(short, 0.5, 0.5).explainer.measure(list(reviews(("bad", "good"), count=3)))
    assert set(both.found.methods) == {*METHODS, CHANCE}
    assert "left out" not in repr(both)


def test_what_an_ngram_adds_is_what_its_part_of_the_label_would_lose(run):
    text, alone = "the lovely dog was great", blended(run, 0.8, 0.6)
    stored, names = alone.task.stored, list(alone.task.labels.names)
    found, record = alone.predict(text).as_values(), stored.record
    weights = {(one.ngram, one.unit): one.weights for one in stored.weights_in(text)}
    best = names.index(max(found["probabilities"], key=found["probabilities"].get))
    bias = stored.bias.astype(float)
    scores = sum(weights.values()) + (np.array([-0.5, 0.5]) * bias if stored.excludes else bias)

    def part_of_best(scores):
        three = record.classes > 2 and not record.multi_label
        logits = 0.6 * (-np.logaddexp(0, -scores) if three else scores) / record.temperature
        return logits[best] - (0 if record.multi_label else logits.mean())

    assert found["parts"]["ngrams"][names[best]] == pytest.approx(part_of_best(scores), rel=1e-4)
    assert len(found["ngrams"]) == 5
    for one in found["ngrams"]:
        without = part_of_best(scores - weights[one["ngram"], one["unit"]])
        assert one["adds"] == pytest.approx(part_of_best(scores) - without, rel=1e-3, abs=1e-4)
    sizes = [abs(one["adds"]) for one in found["ngrams"]]
    assert sizes == sorted(sizes, reverse=True)


def test_a_text_without_a_known_ngram_has_none_that_add(run, monkeypatch):
    monkeypatch.setattr(StoredBaseline, "strongest", lambda *asked: [[]])
    assert blended(run, 0.8, 0.6).predict("a great film").details["ngrams"] == []


@pytest.mark.parametrize("known", [True, False])
def test_details_are_a_dict_that_json_and_others_take(run, known):
    loaded = blended(run, 0.8, 0.6)
    if not known:
        loaded.task.blend = None

    def details():
        return loaded.predict("the lovely dog").details

    plain = {name: details()[name] for name in details()}
    assert ("parts" in plain) == known
    assert json.loads(json.dumps(details())) == plain
    assert json.loads(json.dumps(details(), indent=1)) == plain
    assert {**details()} == dict(details()) == plain == details()
    assert repr(details()) == repr(plain)
    assert pickle.loads(pickle.dumps(details())) == copy.deepcopy(details()) == plain
    assert [*details().items()] == [*plain.items()]
    assert [*details().values()] == [*plain.values()]
    name = [*plain][-1]
    assert details().get(name) == details().pop(name) == details().copy()[name] == plain[name]
    assert details().get("nothing", 5) == details().pop("nothing", 5) == 5
    assert details() | {"more": 1} == plain | {"more": 1}
    assert {"more": 1} | details() == {"more": 1} | plain
    with pytest.raises(KeyError):
        details()["nothing"]
