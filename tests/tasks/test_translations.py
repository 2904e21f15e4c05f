"""Scores of translations: the right ones for what is written, several right answers, intervals."""

import numpy as np
import pytest
import sacrebleu
from small_jobs import everything
from small_pairs import pair_job

from glassformer.tasks.translate.answers import (
    GOALS,
    MEASURES,
    PERFECT,
    Translations,
    measure_for,
)
from glassformer.tasks.translate.batch import right_answers

SAID = ["The cat sat on the mat.", "A dog barks at the red moon.", "It is raining again now."]
MEANT = [
    ["The cat sat on the mat."],
    ["The dog barks at a red moon.", "A dog barks at the red moon tonight."],
    ["It rains again."],
]


def translations(measure, said=SAID, references=MEANT):
    rows = len(said)
    return Translations(said, references, measure, np.arange(1.0, rows + 1), np.full(rows, 2.0))


@pytest.mark.parametrize(
    ("targets", "measure"),
    [
        (["2024-02-29", "1999-12-31"], "letters"),
        (["Москва", "Лондон"], "letters"),
        (["R EH D", "D EH R"] * 8, "symbols"),
        (["Good morning!", "What a film that was."], "text"),
        (["早上好！", "下雨了。"], "text"),
        (["おはようございます"], "text"),
        (["สวัสดีตอนเช้า"], "text"),
    ],
    ids=["dates", "names", "phonemes", "en", "zh", "ja", "th"],
)
def test_the_measure_suits_the_targets(targets, measure):
    assert measure_for(targets) == measure


@pytest.mark.parametrize("measure", MEASURES)
def test_the_goal_is_among_the_scores_and_perfect_where_nothing_is_wrong(measure):
    right = translations(measure, [row[-1] for row in MEANT])
    for goal in GOALS[measure]:
        assert right.values()[goal] == pytest.approx(PERFECT[goal])
    assert translations(measure).values()["exact"] < PERFECT["exact"]


def test_scores_of_text_are_sacrebleus_over_all_references():
    found = translations("text")
    streams = [[row[0] for row in MEANT], [row[-1] for row in MEANT]]
    bleu = sacrebleu.corpus_bleu(SAID, streams, force=True)
    assert found.scores()["bleu"].value == pytest.approx(bleu.score)
    assert found.scores()["chrf"].value == pytest.approx(sacrebleu.corpus_chrf(SAID, streams).score)
    assert found.signatures.keys() == {"bleu", "chrf", "ter"}
    assert "tok:13a" in found.signatures["bleu"]


def test_quick_values_are_those_of_the_scores_without_what_takes_long():
    for measure in MEASURES:
        found = translations(measure)
        scores = found.scores()
        assert found.values().keys() == scores.keys() - {"ter"}
        for name, value in found.values().items():
            assert value == pytest.approx(scores[name].value)
            assert "too few rows" in scores[name].reason
        assert scores["loss"].value == pytest.approx((1 + 2 + 3) / 6)


def test_symbols_and_letters_count_their_own_errors():
    phonemes = translations("symbols", ["R EH D", "D AO"], [["R IY D", "R EH D"], ["D AO R"]])
    assert phonemes.values()["exact"] == phonemes.values()["wer"] == 0.5
    assert phonemes.values()["ser"] == pytest.approx(1 / 6)
    dates = translations("letters", ["2024-02-28", "1999-12-31"], [["2024-02-29"], ["1999-12-31"]])
    assert dates.values()["cer"] == pytest.approx(1 / 20)
    assert dates.values()["exact"] == 0.5
    assert dates.signatures == {}


def test_two_systems_are_compared_by_the_scores_of_the_first():
    ours = translations("text", [row[0] for row in MEANT])
    theirs = translations("letters")
    found = ours.compared_with(theirs)
    assert found.keys() == MEASURES["text"].keys()
    assert found["bleu"].difference.value == pytest.approx(
        100 - translations("text").values()["bleu"]
    )
    assert (found["exact"].wins, found["exact"].losses) == (2, 0)


@pytest.mark.parametrize(
    ("sample", "references"),
    [
        ({"target": "a"}, ("a",)),
        ({"target": "a", "references": ""}, ("a",)),
        ({"target": "a", "references": "bc"}, ("a", "bc")),
        ({"target": "a", "references": ["c", "a", "b"]}, ("a", "c", "b")),
    ],
)
def test_right_answers_are_the_target_and_the_references(sample, references):
    assert right_answers(sample) == references


def test_references_come_with_the_rows_that_are_scored_and_not_with_those_learned(tmp_path):
    rows = [
        {"source": "read", "target": "R IY D", "references": ["R IY D", "R EH D"]},
        {"source": "red", "target": "R EH D"},
    ]
    job = pair_job(tmp_path / "job", rows, task={"measure": "symbols"})
    assert everything(job).references == (("R IY D", "R EH D"), ("R EH D",))
    assert everything(job, epoch=0).references == ()
    said = Translations(
        ["R EH D", "R EH D"], everything(job).references, "symbols", *np.ones((2, 2))
    )
    assert said.values()["exact"] == 1


def test_words_are_not_counted_where_nothing_stands_between_them():
    texts = ["早上好！", "我去图书馆。"]
    chinese = Translations(texts, [[text] for text in texts], "text")
    assert "wer" not in {**chinese.values(), **chinese.scores()}
    assert chinese.values()["cer"] == 0.0
    english = Translations(["good morning"], [["good morning"]], "text")
    assert "wer" in english.values()
