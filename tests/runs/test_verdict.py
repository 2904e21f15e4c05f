"""What a report says first: whether the model is better than the baseline."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison, paired_test
from glassformer.runs.folder import RunFolder
from glassformer.runs.report import intake_notes
from glassformer.runs.verdict import Duel, duel_table, duels, judgement, trivial_line, what_next
from glassformer.tasks.reporter import Reporter, Rival

BASELINE = Rival("n-grams", "n-grams (words)", None, is_baseline=True)
BASE = "the baseline (n-grams)"


def duel(found, score="accuracy", theirs=0.8, rival=BASELINE):
    return Duel(score, rival, theirs + found.difference.value, theirs, found)


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (
            90,
            70,
            f"Better than {BASE}: over 100 rows, accuracy is 20.0 points higher (p < 0.001).",
        ),
        (
            70,
            90,
            f"Worse than {BASE}: over 100 rows, accuracy is 20.0 points lower (p < 0.001).",
        ),
        (
            *(80, 80),
            f"No significant difference from {BASE}: over 100 rows, accuracy is the same (p = 1).",
        ),
        (
            *(81, 80),
            f"No significant difference from {BASE}: over 100 rows, accuracy is 1.0 points higher "
            "(p = 1).",
        ),
    ],
)
def test_the_verdict_names_the_rival_and_what_chance_does(ours, theirs, said):
    rows = np.arange(100)
    assert duel(paired_test(rows < ours, rows < theirs)).sentence("row") == said


CHOICES = "more rows (--curve tells whether they would help), another --size or a longer --time"


def compared(difference, p_value):
    return Comparison(Score(difference, difference - 0.1, difference + 0.1), p_value, 613, 0, 0)


WORSE, BEHIND, TIE, BETTER = (
    duel(compared(*pair)) for pair in ((-0.2, 0.001), (-0.05, 0.4), (0.0, 1.0), (0.2, 0.001))
)


def test_where_the_baseline_is_better_the_report_says_what_to_do(tmp_path):
    folder = RunFolder(tmp_path / "my run")
    use = f"use it with `glassformer predict '{folder.path}' --baseline`, or"
    (told,) = what_next(WORSE, folder, kept=True, room=True)
    assert told == f"The baseline is better here: {use} try {CHOICES}."
    folder.pretrain.path.mkdir(parents=True)
    (told,) = what_next(WORSE, folder, kept=False, room=True)
    choices = CHOICES.replace("--size or", "--size,")
    assert told == f"The baseline is better here: try {choices} or --no-pretrain."


def test_where_the_baseline_is_ahead_by_what_may_be_chance_it_is_named_all_the_same(tmp_path):
    (told,) = what_next(BEHIND, RunFolder(tmp_path), kept=True, room=True)
    assert told.startswith("The baseline may be better here: use it with `glassformer")
    (told,) = what_next(BEHIND, RunFolder(tmp_path), kept=False, room=True)
    assert told == f"The baseline may be better here: try {CHOICES}."


def test_a_tie_with_the_baseline_says_what_to_try_unless_nothing_is_left_to_gain(tmp_path):
    folder = RunFolder(tmp_path)
    assert what_next(TIE, folder, kept=True, room=True) == [f"To do better, try {CHOICES}."]
    (told,) = what_next(TIE, folder, kept=True, room=True, sized=False)
    assert told == (
        "To do better, try more rows (--curve tells whether they would help) or a longer --time."
    )
    assert what_next(TIE, folder, kept=True, room=False) == []
    assert what_next(BETTER, folder, kept=True, room=True) == []


@pytest.mark.parametrize(
    ("goal", "difference", "said"),
    [
        (
            "exact",
            0.79,
            f"Better than {BASE}: over 613 users, exact answers are 79.0 points higher",
        ),
        (
            "macro_f1",
            -0.023,
            f"Worse than {BASE}: over 613 users, macro-F1 is 2.3 points lower",
        ),
        ("bleu", 30.81, f"Better than {BASE}: over 613 users, BLEU is 30.8 higher"),
        (
            "wer",
            0.05,
            f"Worse than {BASE}: over 613 users, word error rate is 5.0 points higher",
        ),
        ("rmse", -0.025, f"Better than {BASE}: over 613 users, RMSE is 0.025 lower"),
    ],
)
def test_the_verdict_names_the_score_and_knows_its_scale_and_which_way_is_better(
    goal, difference, said
):
    told = duel(compared(difference, 0.02), goal).sentence("user")
    assert told == f"{said} (p = 0.02)."


class Reports(Reporter):
    """Answers are a number for each score."""

    compared_unit = "user"

    def compare(self, first, second):
        return {score: compared(first[score] - second[score], 0.01) for score in first}


def systems(**answers):
    scores = {
        name: {score: Score(value, value, value) for score, value in values.items()}
        for name, values in answers.items()
    }
    return [Rival(name, name, values) for name, values in answers.items() if name != "ours"], scores


def test_the_model_is_compared_with_the_strongest_system_in_each_score():
    ours = {"rmse": 0.911, "ndcg": 0.017}
    rivals, scores = systems(
        ours=ours,
        factors={"rmse": 0.936, "ndcg": 0.012},
        popularity={"rmse": 1.04, "ndcg": 0.021},
        biases={"rmse": 0.906, "ndcg": 0.002},
    )
    reporter = Reports(SimpleNamespace(goal="rmse"))
    assert judgement(reporter, ours, rivals, scores) == [
        "Worse than biases: over 613 users, RMSE is 0.005 higher (p = 0.01).",
        "A simple system is ahead in NDCG@10 (popularity 0.021, this model 0.017, p = 0.01).",
    ]
    table = duel_table(duels(reporter, ours, rivals, scores))
    assert [row[:4] for row in table.rows] == [
        ("RMSE", "0.911", "0.906", "biases"),
        ("NDCG@10", "0.017", "0.021", "popularity"),
    ]


@pytest.mark.parametrize(
    ("ours", "p_value", "said"),
    [
        (0.542, 1.0, "The accuracy, 0.542, is that of always answering 'ham'."),
        (0.5, 0.01, "The accuracy, 0.500, is worse than that of always answering 'ham': 0.542"),
        (0.56, 0.3, "The accuracy, 0.560, is not significantly better than that of always"),
        (0.9, 0.001, None),
    ],
)
def test_a_model_no_better_than_the_most_frequent_label_is_said_to_be_so(ours, p_value, said):
    rival = Rival("always answering 'ham'", "always", None, trivial=True)
    told = trivial_line("accuracy", ours, rival, compared(ours - 0.542, p_value))
    assert told is None if said is None else told.startswith(said)


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
