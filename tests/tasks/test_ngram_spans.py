"""N-grams of many texts at once: those of one text after the other."""

import time

import numpy as np
import pytest
from test_ngram_baseline import fitted, reviews

from glassformer.tasks.classify.stored_baseline import StoredBaseline
from glassformer.tasks.shared import ngram_spans
from glassformer.tasks.shared.ngram_hashing import buckets_of, ngrams_of
from glassformer.tasks.shared.ngram_spans import buckets_of_spans, chunks, spans_of
from glassformer.tasks.shared.ngrams import Analyser

TEXTS = (
    "",
    "zzz 猫",
    "  ",
    "Ünï  code\n漢字 x",
    "İstanbul! No? yes",
    "a\tb",
    "great great",
    "\ud800",
)


@pytest.mark.parametrize("analyser", [Analyser("word", 3), Analyser("character", 5)])
@pytest.mark.parametrize("texts", [TEXTS, ("",), ()])
def test_they_are_those_of_each_text_with_the_same_buckets(analyser, texts):
    found = spans_of(texts, analyser)
    written = [found.written(number) for number in range(len(found.starts))]
    for number, text in enumerate(texts):
        mine = [written[place] for place in np.flatnonzero(found.text_of == number)]
        assert sorted(mine) == sorted(ngrams_of(text, analyser))
    assert buckets_of_spans(found).tolist() == buckets_of(written).tolist()


def test_texts_are_read_in_pieces_of_a_few_characters(monkeypatch):
    monkeypatch.setattr(ngram_spans, "CHARACTERS", 10)
    texts = ["", "four", "five!", "more than ten characters", "", "a"]
    assert [*chunks(texts)] == [["", "four"], ["five!"], [texts[3]], ["", "a"]]
    model, texts = fitted(101), reviews(31, seed=2)[0]
    found = StoredBaseline.of(model).probabilities(texts)
    assert found == pytest.approx(model.probabilities(texts), abs=1e-5)


def test_the_strongest_ngrams_are_those_with_the_largest_weights():
    stored, texts = StoredBaseline.of(fitted(211)), reviews(7, seed=2)[0]
    labels = np.array([1, 0, 1, 1, 0, 0, 1])
    for text, label, found in zip(texts, labels, stored.strongest(texts, labels, 3), strict=True):
        weights = {(one.unit, one.ngram): one.weights[label] for one in stored.weights_in(text)}
        largest = sorted(map(abs, weights.values()), reverse=True)[:3]
        assert [abs(strength) for _, strength in found] == pytest.approx(largest)
        for one, strength in found:
            assert strength == pytest.approx(weights[one.unit, one.ngram])


@pytest.mark.full  # a measurement
def test_ten_thousand_short_texts_take_less_than_a_second_of_one_core():
    stored, texts = StoredBaseline.of(fitted(2003)), reviews(10_007, seed=2, words=9)[0]
    stored.probabilities(texts[:10])
    started = time.process_time()
    stored.probabilities(texts)
    assert time.process_time() - started < 1
