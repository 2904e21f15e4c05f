"""The baseline that a run keeps: the same answers as scikit-learn's, without it."""

import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.utils import murmurhash3_32
from test_ngram_baseline import fitted, names, reviews

from glassformer.errors import GlassformerError
from glassformer.tasks.classify import stored_baseline
from glassformer.tasks.classify.ngram_baseline import NgramBaseline
from glassformer.tasks.classify.stored_baseline import RECORD, TENSORS, StoredBaseline
from glassformer.tasks.shared import ngram_counts, ngram_hashing, ngram_spans, ngrams
from glassformer.tasks.shared.ngram_counts import hashed
from glassformer.tasks.shared.ngram_hashing import buckets_of, murmur3, ngrams_of
from glassformer.tasks.shared.ngrams import BUCKETS, WORDS, Analyser

ODD = ("", "zzz 猫", "Ünï  code\n漢字 x", "İstanbul! No? yes", "a\tb", "great great great dull")


def several_labels():
    texts, first = reviews(211)
    labels = np.stack([first, [" music" in text for text in texts]], axis=1).astype(int)
    return NgramBaseline.fit(texts[:150], labels[:150], texts[150:], labels[150:], 2)


KINDS = {
    "two labels": lambda: fitted(211),
    "three labels": lambda: fitted(211, names, 3),
    "several labels a text": several_labels,
    "no known n-gram": lambda: NgramBaseline.fit(["", " "], np.array([0, 1]), [], np.zeros(0), 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_its_answers_are_those_of_scikit_learn_and_need_it_no_more(kind, tmp_path, monkeypatch):
    model = KINDS[kind]()
    texts = [*reviews(31, seed=2)[0], *names(31, seed=3)[0], *ODD]
    expected = model.probabilities(texts)
    StoredBaseline.of(model).save(tmp_path)
    monkeypatch.setattr(ngrams, "import_module", None)
    stored = StoredBaseline.load(tmp_path)
    assert stored.probabilities(texts) == pytest.approx(expected, abs=1e-5)
    assert stored.record.chosen == model.described


def test_ngrams_that_share_a_bucket_share_its_weight(monkeypatch):
    for module in (ngram_counts, ngram_hashing, ngram_spans, stored_baseline):
        monkeypatch.setattr(module, "BUCKETS", 64)
    model, texts = fitted(101), reviews(31, seed=2)[0]
    stored = StoredBaseline.of(model)
    assert stored.probabilities(texts) == pytest.approx(model.probabilities(texts), abs=1e-5)


def test_hashes_are_those_of_scikit_learn():
    keys = [b"", *(bytes(range(200, 200 + n)) for n in range(1, 12)), "漢字 no!".encode()]
    assert murmur3(keys).tolist() == [murmurhash3_32(key, positive=True) for key in keys]


@pytest.mark.parametrize("analyser", [Analyser("word", 3), Analyser("character", 5)])
def test_ngrams_and_their_buckets_are_those_of_scikit_learn(analyser):
    hashing = hashing_of(analyser)
    for text in (*ODD, *reviews(3)[0]):
        given = text if analyser.unit == "word" else f" {text} "
        found = list(ngrams_of(text, analyser))
        assert sorted(found) == sorted(hashing.build_analyzer()(given))
        row = hashing.transform([given])
        counts = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        buckets, times = np.unique(buckets_of(found), return_counts=True)
        assert dict(zip(buckets.tolist(), times.tolist(), strict=True)) == counts


@pytest.mark.parametrize("analyser", [Analyser("word", 3), Analyser("character", 5)])
def test_counts_of_many_texts_are_those_of_scikit_learn(analyser, monkeypatch):
    monkeypatch.setattr(ngram_spans, "CHARACTERS", 100)  # several chunks
    texts = [*ODD, *reviews(7)[0]]
    given = texts if analyser.unit == "word" else [f" {text} " for text in texts]
    expected = hashing_of(analyser).transform(given)
    assert (hashed(texts, analyser) != expected).nnz == 0
    assert hashed([], analyser).shape == (0, BUCKETS)


def hashing_of(analyser):
    by_words = analyser.unit == "word"
    return HashingVectorizer(
        analyzer="word" if by_words else "char",
        token_pattern=WORDS if by_words else None,
        lowercase=by_words,
        ngram_range=(1, analyser.longest),
        n_features=BUCKETS,
        alternate_sign=False,
        norm=None,
    )


@pytest.mark.parametrize(("kind", "text"), [("two labels", "great"), ("three labels", "abcdski")])
def test_the_weights_of_its_ngrams_sum_to_the_odds(kind, text):
    model = KINDS[kind]()
    stored = StoredBaseline.of(model)
    found = stored.weights_in(f"{text} {text}")
    assert {len(one.weights) for one in found} == {model.classes}
    total = sum(one.weights for one in found)
    row = stored.probabilities([f"{text} {text}"])[0]
    if model.classes == 2:
        odds = (total[1] - total[0] + stored.bias[0]) / model.temperature
        assert np.log(row[1] / row[0]) == pytest.approx(odds, abs=1e-5)
        assert next(one.weights for one in found if one.ngram == "great")[1] > 0
    else:
        scores = -np.logaddexp(0, -(total + stored.bias)) / model.temperature
        assert np.log(row) - np.log(row[0]) == pytest.approx(scores - scores[0], abs=1e-5)


def test_it_says_whether_it_knows_anything_of_a_text():
    words = StoredBaseline.of(NgramBaseline.fit(*reviews(31), [], np.zeros(0), 2))
    assert words.knows("a great plan")
    assert not words.knows("xyzzy 猫")
    letters = StoredBaseline.of(NgramBaseline.fit(*names(31), [], np.zeros(0), 3))
    name = names(31)[0][0]
    assert letters.knows(f"x{name[:2]}")
    assert letters.knows(name[0])  # all there is
    assert not letters.knows(f"{name[0]}☃ x{name[1]}☃")  # single letters say nothing
    assert not letters.knows("猫 ☃")  # a space says nothing


@pytest.mark.parametrize("make", [reviews, names])
def test_many_texts_are_looked_up_at_once(make, monkeypatch):
    stored = StoredBaseline.of(NgramBaseline.fit(*make(31), [], np.zeros(0), 3))
    texts = [*ODD, "xyzzy 猫", *make(41, seed=2)[0], *(word[0] for word in names(31)[0])]
    expected = [stored.knows(text) for text in texts]
    assert {*expected} == {True, False}
    assert stored.knows_each(texts) == expected
    assert stored.knows_each(texts[:3]) == expected[:3]
    one_by_one = []
    monkeypatch.setattr(StoredBaseline, "knows", lambda self, text: bool(one_by_one.append(text)))
    stored.knows_each(texts)
    assert len(one_by_one) < len(texts) / 2  # most need no second look


def test_a_run_without_one_has_none_and_a_damaged_one_is_refused(tmp_path):
    assert StoredBaseline.load(tmp_path) is None
    StoredBaseline.of(fitted(20, valid=5)).save(tmp_path)
    record = json.loads((tmp_path / RECORD).read_text())
    (tmp_path / RECORD).write_text(json.dumps(record | {"classes": 3}))
    with pytest.raises(GlassformerError, match=r"baseline\.json: not the baseline.*copy the run"):
        StoredBaseline.load(tmp_path)
    (tmp_path / RECORD).write_text(json.dumps(record))
    (tmp_path / TENSORS).write_bytes(b"short")
    with pytest.raises(GlassformerError, match="not the baseline of a run"):
        StoredBaseline.load(tmp_path)
