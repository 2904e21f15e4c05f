"""Scores of translations equal those of the libraries, and say when a difference is real."""

import builtins
import random

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from glassformer.errors import GlassformerError
from glassformer.metrics.error_rates import (
    character_error_rate,
    exact_match,
    mismatch,
    word_error_rate,
)
from glassformer.metrics.measurement import References
from glassformer.metrics.sacre import bleu, chrf, ter, tokenization_for
from glassformer.metrics.translation import (
    SYMBOL_MEASURES,
    TEXT_MEASURES,
    measure_translations,
    translation_comparison,
    translation_scores,
)

WORDS = ("the", "a", "dog,", "cat", "“red”", "walks", "over", "stone's", "3.5", "and", "water.")
ROWS = 53


def sentences(seed: int, rows: int = ROWS) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(1, 17))) for _ in range(rows)]


def spoilt(texts: list[str], share: float, seed: int = 1) -> list[str]:
    """Each word with this chance another one."""
    dice = random.Random(seed)
    return [
        " ".join(dice.choice(WORDS) if dice.random() < share else word for word in text.split())
        for text in texts
    ]


def alone(texts: list[str]) -> References:
    return [[text] for text in texts]


def value(measured) -> float:
    return float(measured.statistic(measured.rows.sum(axis=0, keepdims=True))[0])


@pytest.mark.parametrize(
    ("measure", "theirs"), [(bleu, BLEU), (chrf, CHRF), (ter, TER)], ids=["bleu", "chrf", "ter"]
)
def test_scores_equal_those_of_sacrebleu(measure, theirs):
    truth = sentences(0)
    for answers in (truth, spoilt(truth, 0.3), sentences(7), [""] * ROWS):
        metric = theirs()
        expected = metric.corpus_score(answers, [truth]).score
        measured = measure(answers, alone(truth))
        assert value(measured) == pytest.approx(expected, abs=1e-6)
        assert measured.signature == str(metric.get_signature())


def test_rows_may_have_different_numbers_of_references():
    truth, others = sentences(0), sentences(5)
    references = [[truth[row], others[row]][: 1 + row % 2] for row in range(ROWS)]
    streams = [truth, [other if row % 2 else None for row, other in enumerate(others)]]
    answers = spoilt(others, 0.2)
    for measure, metric in ((bleu, BLEU()), (chrf, CHRF()), (ter, TER())):
        measured = measure(answers, references)
        assert value(measured) == pytest.approx(metric.corpus_score(answers, streams).score)
        assert "nrefs:var" in measured.signature


CHINESE = ["早上好，我的朋友。", "他昨天买了三本书。", "我们明天去北京。"]
SAID = ["早上好，我的朋友！", "他昨天买了两本书。", "我们明天去上海。"]


def test_chinese_is_cut_as_sacrebleu_cuts_it_and_the_signature_says_so():
    measured = bleu(SAID, alone(CHINESE))
    expected = BLEU(tokenize="zh").corpus_score(SAID, [CHINESE]).score
    assert value(measured) == pytest.approx(expected, abs=1e-6)
    assert 30 < expected < 90
    assert "tok:zh" in measured.signature
    assert 0 < value(ter(SAID, alone(CHINESE))) < 40  # uncut, every sentence would be one word


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Guten Morgen, 世界!", "13a"),
        ("こんにちは世界", "char"),
        ("東京に行きます", "char"),
        ("สวัสดีครับ", "char"),
        ("我爱 Python", "13a"),
        ("我们都喜欢 Python", "13a"),
        ("我们大家都喜欢用 Python", "zh"),
        ("42", "13a"),
    ],
)
def test_how_words_are_cut_follows_from_most_letters(text, cut):
    assert tokenization_for([[text]]) == cut


def test_japanese_is_cut_into_characters_and_the_signature_says_so():
    assert "tok:char" in bleu(["東京に行く"], [["東京に行きます"]]).signature


def test_a_row_is_right_when_it_equals_any_reference():
    references = [["R EH D", "R IY D"], ["T AA P"], ["B IH T"]]
    answers = ["R IY D", " T AA P ", "B IY T"]
    assert value(exact_match(answers, references)) == pytest.approx(2 / 3)
    assert value(mismatch(answers, references)) == pytest.approx(1 / 3)


def slow_distance(a, b) -> int:
    """Levenshtein's table, as the textbooks have it."""
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, start=1):
        last, row[0] = row[0], i
        for j, other in enumerate(b, start=1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (one != other))
    return row[-1]


@pytest.mark.parametrize(
    ("measure", "units"),
    [(word_error_rate, str.split), (character_error_rate, str)],
    ids=["wer", "cer"],
)
def test_error_rates_are_edits_over_units(measure, units):
    truth = sentences(0)
    answers = spoilt(truth, 0.4)
    answers[3], answers[7] = "", f"  {truth[7]} "
    edits = sum(
        slow_distance(units(a.strip()), units(t)) for a, t in zip(answers, truth, strict=True)
    )
    expected = edits / sum(len(units(text)) for text in truth)
    assert value(measure(answers, alone(truth))) == pytest.approx(expected)


def test_edits_are_those_to_the_closest_reference():
    measured = word_error_rate(["a b c d"], [["a x y z", "a b c", "a b"]])
    assert measured.rows.tolist() == [[1.0, 3.0]]


def test_every_score_has_an_interval_around_it():
    truth = sentences(0)
    scores = translation_scores(measure_translations(spoilt(truth, 0.3), alone(truth)))
    assert scores.keys() == TEXT_MEASURES.keys()
    for name, score in scores.items():
        assert score.low < score.value < score.high
        assert score.high <= (100 if name in ("bleu", "chrf") else 200)


@pytest.mark.parametrize("name", TEXT_MEASURES)
def test_a_better_system_is_told_from_a_worse_one(name):
    truth = sentences(0)
    good, bad = (
        measure_translations(spoilt(truth, share), alone(truth), {name: TEXT_MEASURES[name]})
        for share in (0.03, 0.4)
    )
    compared = translation_comparison(good, bad)[name]
    assert compared.wins > compared.losses
    assert compared.p_value < 0.01
    assert (compared.difference.value > 0) == (name in ("bleu", "chrf", "exact"))
    back = translation_comparison(bad, good)[name]
    assert (back.wins, back.losses) == (compared.losses, compared.wins)
    same = translation_comparison(good, good)[name]
    assert (same.p_value, same.ties) == (1.0, ROWS)


def test_short_sentences_win_and_lose_by_bleu_too():
    truth = ["a dog", "red cat", "the man"]
    good, bad = (
        measure_translations(answers, alone(truth), {"bleu": bleu})
        for answers in (truth, ["a cat", "red dog", "the man"])
    )
    compared = translation_comparison(good, bad)["bleu"]
    assert (compared.wins, compared.losses, compared.ties) == (2, 0, 1)


def test_symbols_have_their_own_scores():
    measured = measure_translations(["a b", "c"], [["a c"], ["c"]], SYMBOL_MEASURES)
    scores = translation_scores(measured)
    assert [round(scores[name].value, 3) for name in ("exact", "wer", "ser")] == [0.5, 0.5, 0.333]
    assert translation_comparison(measured, measured)["ser"].ties == 2


@pytest.mark.parametrize(
    ("answers", "references", "words"),
    [
        ([], [], "at least one row"),
        (["a"], [["a"], ["b"]], "got 1 answers and references for 2"),
        (["a", "b"], [["a"], []], "row 1 has none"),
        (["a"], ["a"], "references are lists"),
    ],
)
def test_what_cannot_be_scored_is_refused(answers, references, words):
    for measure in (exact_match, bleu, word_error_rate):
        with pytest.raises(ValueError, match=words):
            measure(answers, references)


@pytest.mark.parametrize(
    ("measure", "library"), [(bleu, "sacrebleu"), (word_error_rate, "rapidfuzz")]
)
def test_a_missing_library_is_one_line(monkeypatch, measure, library):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(GlassformerError, match=rf"{library}.*glassformer\[translate\]"):
        measure(["a"], [["a"]])
