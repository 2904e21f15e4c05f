"""What a report says first: whether the model is better than the baseline."""

import json

import numpy as np
import pytest

from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison, paired_test
from glassformer.runs.folder import RunFolder
from glassformer.runs.report import intake_notes, verdict, what_next


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (90, 70, "it is better than the baseline by 20.0 points of accuracy (p < 0.001)."),
        (70, 90, "it is worse than the baseline by 20.0 points of accuracy (p < 0.001)."),
        (80, 80, "it is not significantly different from the baseline (p = 1)."),
        (
            *(81, 80),
            "it is not significantly different from the baseline (better by 1.0 points of "
            "accuracy, p = 1).",
        ),
    ],
)
def test_the_verdict_names_the_side_and_what_chance_does(ours, theirs, said):
    rows = np.arange(100)
    found = verdict(paired_test(rows < ours, rows < theirs), "accuracy")
    assert found == f"On 100 rows {said}"


CHOICES = "more rows (--curve tells whether they would help), another --size, a longer --time"
WORSE = "On 9 rows it is worse than the baseline by 20.0 points of accuracy (p < 0.001)."
TIE = "On 9 rows it is not significantly different from the baseline (p = 1)."


def test_where_the_baseline_is_better_the_report_says_what_to_do(tmp_path):
    folder = RunFolder(tmp_path / "my run")
    use = f"use it with `glassformer predict '{folder.path}' --baseline`, or"
    (told,) = what_next(WORSE, folder, kept=True, room=True)
    assert told == f"The baseline is better here: {use} try {CHOICES}."
    folder.pretrain.path.mkdir(parents=True)
    (told,) = what_next(WORSE, folder, kept=False, room=True)
    assert told == f"The baseline is better here: try {CHOICES}, --no-pretrain."


def test_where_the_baseline_is_ahead_by_what_may_be_chance_it_is_named_all_the_same(tmp_path):
    sentence = TIE.replace("(p", "(worse by 5.0 points of accuracy, p")
    (told,) = what_next(sentence, RunFolder(tmp_path), kept=True, room=True)
    assert told.startswith("The baseline is better here, if not surely: use it with `glassformer")
    (told,) = what_next(sentence, RunFolder(tmp_path), kept=False, room=True)
    assert told == f"The baseline is better here, if not surely: try {CHOICES}."


def test_a_tie_with_the_baseline_says_what_to_try_unless_nothing_is_left_to_gain(tmp_path):
    folder = RunFolder(tmp_path)
    assert what_next(TIE, folder, kept=True, room=True) == [f"To do better, try {CHOICES}."]
    (told,) = what_next(TIE, folder, kept=True, room=True, sized=False)
    assert told == f"To do better, try {CHOICES.replace('another --size, ', '')}."
    assert what_next(TIE, folder, kept=True, room=False) == []
    better = WORSE.replace("worse", "better")
    assert what_next(better, folder, kept=True, room=True) == []


@pytest.mark.parametrize(
    ("goal", "difference", "said"),
    [
        ("exact", 0.79, "by 79.0 points of exact answers (p = 0.02)."),
        ("macro_f1", -0.023, "by 2.3 points of macro-F1 (p = 0.02)."),
        ("bleu", 30.81, "better than the baseline by 30.8 BLEU (p = 0.02)."),
        ("wer", 0.05, "worse than the baseline by 5.0 points of word error rate (p = 0.02)."),
        ("loss", -0.125, "better than the baseline by 0.125 loss (p = 0.02)."),
    ],
)
def test_the_verdict_names_the_score_and_knows_its_scale_and_which_way_is_better(
    goal, difference, said
):
    found = Comparison(Score(difference, difference, difference), 0.02, 1, 0, 0)
    assert verdict(found, goal).endswith(said)


@pytest.mark.parametrize("name", ["added", "back_translated"])
def test_added_rows_are_told_also_of_runs_of_earlier_versions(name, tmp_path):
    shared = {"test": {"count": 7, "first": "clips.csv row 3"}}
    shared["valid"] = {"count": 1, "first": "clips.csv row 5"}
    (tmp_path / "intake.json").write_text(json.dumps({name: ["5 rows added"], "shared": shared}))
    added, twice, once = intake_notes(RunFolder(tmp_path), "recording")
    assert added == "5 rows added."
    assert twice.startswith("7 recordings of the test split are also in the training split")
    assert once == (
        "1 recording of the valid split is also in the training split, first clips.csv row 5: "
        "scores on it are optimistic."
    )


def test_the_report_says_what_splits_share_besides_whole_rows(tmp_path):
    related = {"transcript": {"test": {"count": 7, "first": "clips.csv row 3"}}}
    values = {"counts": {"train": 90, "test": 10}, "related": related}
    (tmp_path / "intake.json").write_text(json.dumps(values | {"together": {"They are": "good"}}))
    assert intake_notes(RunFolder(tmp_path), "recording") == [
        "They are.",
        "7 of 10 test rows (70.0 %) have a transcript that training rows also have: a model may "
        "know it by heart.",
    ]
