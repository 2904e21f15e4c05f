"""The honest baseline: it learns, chooses on validation rows alone, and is sane in corners."""

import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer

from glassformer.errors import GlassformerError
from glassformer.tasks.classify import linear, ngram_baseline
from glassformer.tasks.classify.ngram_baseline import (
    CHOOSERS,
    NgramBaseline,
    Setting,
    rows_to_tune_on,
    unbiased_logits,
)
from glassformer.tasks.shared import ngrams
from glassformer.tasks.shared.ngram_counts import NgramCounts
from glassformer.tasks.shared.ngrams import Analyser, analysers_for, combinations_for, weighted

GOOD, BAD = ("lovely", "great", "fine", "moving"), ("dull", "poor", "weak", "boring")
FILLER = ("the", "film", "was", "with", "an", "actor", "and", "scene", "music", "end")


def reviews(rows, seed=0, words=13):
    """Texts whose class shows in one word in four."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, rows)
    texts = [
        " ".join(
            str(random.choice((BAD, GOOD)[label] if random.random() < 0.25 else FILLER))
            for _ in range(words)
        )
        for label in labels
    ]
    return texts, labels


def names(rows, seed=0):
    """Short words of three made-up languages, told apart by their endings."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, rows)
    letters = [*"abcdefghiklmnoprstu"]
    texts = ["".join(random.choice(letters, 4)) + ("ski", "ini", "sen")[n] for n in labels]
    return texts, labels


def fitted(rows, make=reviews, classes=2, valid=61):
    return NgramBaseline.fit(*make(rows), *make(valid, seed=1), classes)


def accuracy(model, texts, labels):
    return (model.probabilities(texts).argmax(axis=1) == labels).mean()


def test_it_learns_which_words_are_good():
    model = fitted(401)
    assert accuracy(model, *reviews(199, seed=2)) > 0.9
    assert re.fullmatch(
        r"(word|character) 1-\d-grams( and character 1-5-grams)?, (tf-idf, )?C = [\d.]+",
        model.described,
    )
    assert 0 < model.seconds < 30


def test_it_learns_names_by_their_characters():
    model = fitted(301, names, classes=3)
    assert accuracy(model, *names(101, seed=2)) > 0.95
    assert "character 1-5-grams" in model.described


def test_probabilities_are_probabilities():
    chances = fitted(101, names, classes=3).probabilities(names(17, seed=2)[0])
    assert chances.shape == (17, 3)
    assert (chances >= 0).all()
    assert chances.sum(axis=1) == pytest.approx(np.ones(17))


def test_it_learns_several_labels():
    texts, first = reviews(401)
    second = np.array([" music" in text for text in texts], dtype=int)
    labels = np.stack([first, second, np.zeros(401, dtype=int)], axis=1)
    model = NgramBaseline.fit(texts[:300], labels[:300], texts[300:350], labels[300:350], 3)
    chances = model.probabilities(texts[350:])
    assert chances.shape == (51, 3)
    assert ((chances >= 0.5) == labels[350:]).mean() > 0.85
    assert (chances[:, 2] < 0.1).all()


def test_the_same_rows_give_the_same_baseline():
    texts = names(23, seed=2)[0]
    first, second = fitted(101, names, 3), fitted(101, names, 3)
    assert first.described == second.described
    assert (first.probabilities(texts) == second.probabilities(texts)).all()


def test_twenty_rows_are_enough_to_start():
    assert accuracy(fitted(20, valid=5), *reviews(97, seed=2)) > 0.5


def test_without_validation_rows_it_takes_the_likeliest_setting():
    texts, labels = names(101)
    model = NgramBaseline.fit(texts, labels, [], np.zeros(0, dtype=int), 3)
    assert model.described == "character 1-5-grams, C = 1"
    assert model.temperature == 1
    assert accuracy(model, *names(101, seed=2)) > 0.9


def test_a_class_with_one_row_and_a_class_with_none_are_no_trouble():
    texts, labels = reviews(61)
    labels[7], labels[8] = 2, 2
    model = NgramBaseline.fit(texts[:40], labels[:40], texts[40:], labels[40:], 5)
    chances = model.probabilities(texts)
    assert chances.shape == (61, 5)
    assert chances.sum(axis=1) == pytest.approx(np.ones(61))
    assert (chances[:, 3:] < 0.1).all()


@pytest.mark.parametrize("classes", [1, 2])
def test_a_single_class_is_always_the_answer(classes):
    model = NgramBaseline.fit(["a b", "c"], np.zeros(2, dtype=int), ["a"], np.array([0]), classes)
    assert (model.probabilities(["a", "zzz"]).argmax(axis=1) == 0).all()


def test_texts_without_a_word_leave_how_frequent_the_classes_are():
    labels = np.array([0, 1, 1, 1])
    model = NgramBaseline.fit(["", " ", "", ""], labels, [""], np.array([1]), 2)
    assert (model.probabilities(["", "new words"]).argmax(axis=1) == 1).all()


def test_no_texts_have_no_probabilities():
    assert fitted(20).probabilities([]).shape == (0, 2)


def test_a_text_of_unknown_words_is_answered():
    assert np.isfinite(fitted(101).probabilities(["übergroße 猫 ☃", ""])).all()


def test_without_training_rows_it_refuses():
    with pytest.raises(ValueError, match="needs training rows"):
        NgramBaseline.fit([], np.zeros(0, dtype=int), [], np.zeros(0, dtype=int), 2)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(ngrams, "import_module", missing)
    with pytest.raises(GlassformerError, match=r"pip install 'glassformer\[baseline\]' \("):
        fitted(20)


def test_importing_it_does_not_import_scikit_learn():
    code = (
        "import sys, glassformer.tasks.classify.ngram_baseline; sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_the_validation_rows_choose(monkeypatch):
    seen = []
    plain = ngram_baseline.quality_of

    def quality(logits, labels):
        seen.append(len(labels))
        return plain(logits, labels)

    monkeypatch.setattr(ngram_baseline, "quality_of", quality)
    fitted(101, valid=53)
    assert set(seen) == {53, 47, 48}  # all of them, or all but a tenth
    assert len(seen) >= 4


def test_when_the_work_is_spent_the_search_stops(monkeypatch):
    monkeypatch.setattr(ngram_baseline, "WORK", 1)
    assert fitted(101).described == "word 1-2-grams, C = 1"


def test_when_its_time_is_over_the_first_setting_answers():
    texts, labels = reviews(401)
    in_haste = NgramBaseline.fit(texts, labels, *reviews(61, seed=1), 2, most_seconds=0.0)
    assert in_haste.cut_short
    assert in_haste.trial.setting == Setting(combinations_for(texts, 1)[0])
    assert accuracy(in_haste, *reviews(101, seed=2)) > 0.8
    assert not fitted(101).cut_short


def test_settings_are_tried_on_some_of_many_rows_and_one_fit_learns_from_all(monkeypatch):
    fits = []
    plain = linear.logistic_regression

    def regression(features, inside, settings, weights):
        fits.append((features.shape[0], settings.rounds))
        return plain(features, inside, settings, weights)

    monkeypatch.setattr(linear, "logistic_regression", regression)
    monkeypatch.setattr(ngram_baseline, "TUNED_ON", 211)
    model = fitted(401)
    rounds = ngram_baseline.MANY_ROWS_ROUNDS
    assert len(fits) >= 4
    assert fits == [(211, rounds)] * (len(fits) - 1) + [(401, rounds)]
    assert accuracy(model, *reviews(199, seed=2)) > 0.9
    assert fitted(401).described == model.described
    fits.clear()
    fitted(211)
    assert set(fits) == {(211, ngram_baseline.ROUNDS)}


def test_of_too_many_ngrams_the_most_frequent_stay():
    counts = NgramCounts(Analyser("word", 1), ["a b", "a c", "a b d"], columns=2)
    assert np.asarray(counts.training.sum(axis=1)).ravel().tolist() == [2, 1, 2]


def test_tf_idf_is_that_of_scikit_learn():
    texts, _ = reviews(67)
    counts = NgramCounts(Analyser("word", 2), texts)
    doubles = counts.training.astype(float)
    expected = TfidfTransformer(sublinear_tf=True).fit_transform(doubles)
    assert np.abs(weighted(counts.training, counts.idf) - expected).max() < 1e-12
    expected = TfidfTransformer(sublinear_tf=True, use_idf=False).fit_transform(doubles)
    assert np.abs(weighted(counts.training) - expected).max() < 1e-12


def test_ratios_are_those_of_the_paper():
    counts = NgramCounts(Analyser("word", 1), ["x x y", "x", "y"]).training
    rows_with = np.array([2, 2])
    ratios = linear.log_count_ratios(counts, np.array([True, True, False]), rows_with)
    expected = {np.log((3 / 5) / (1 / 3)), np.log((2 / 5) / (2 / 3))}
    assert sorted(ratios) == pytest.approx(sorted(expected))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Anna Maria", "Kurt"], ["character 1-5-grams", "word 1-2-grams"]),
        (["word " * 50], ["word 1-2-grams", "word 1-3-grams", "character 1-5-grams"]),
        (["word " * 50] * 25_000, ["word 1-2-grams", "word 1-3-grams"]),
        (["電影很好看" * 20], ["character 1-5-grams", "word 1-2-grams"]),
        (["電影很好看" * 200_000] * 6, ["character 1-3-grams", "word 1-2-grams"]),
        ([""], ["character 1-5-grams", "word 1-2-grams"]),
    ],
)
def test_what_is_tried_fits_the_texts(texts, expected):
    assert [str(analyser) for analyser in analysers_for(texts)] == expected


@pytest.mark.parametrize(
    ("rows", "models", "together"),
    [
        (1, 7, "word 1-2-grams and character 1-5-grams"),
        (25_000, 1, "word 1-3-grams and character 1-6-grams"),
        (25_000, 7, None),
        (170_000, 1, None),
    ],
)
def test_words_and_characters_are_counted_together_unless_it_takes_long(rows, models, together):
    combinations = combinations_for(["word " * 50] * rows, models)
    found = [str(Setting(one)) for one in combinations if len(one) > 1]
    assert found == ([] if together is None else [f"{together}, C = 1"])


def test_settings_of_long_texts_are_tried_on_fewer_rows():
    rows = rows_to_tune_on(["word " * 50] * 40_000)
    assert len(rows) == 10_000
    rows = rows_to_tune_on(["word " * 500] * 10_000)
    assert len(set(rows.tolist())) == len(rows) == 2_000


def test_no_row_has_a_say_in_what_it_is_scored_by():
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 97)
    tried = [random.normal(size=(97, 2)) + level * np.eye(2)[labels] for level in (0.5, 2.0, 3.0)]
    mine = np.arange(97) % CHOOSERS == 3
    found = unbiased_logits(tried, labels)
    other = unbiased_logits(tried, np.where(mine, 1 - labels, labels))
    assert (found[mine] == other[mine]).all()
    assert (found[~mine] != other[~mine]).any()
    assert (found.argmax(1) == tried[2].argmax(1)).all()  # the best of them, at some temperature
