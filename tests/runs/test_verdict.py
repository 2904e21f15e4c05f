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
        (81, 80, "it is not significantly different from the baseline (p = 1)."),
    ],
)
def test_the_verdict_names_the_side_and_what_chance_does(ours, theirs, said):
    rows = np.arange(100)
    found = verdict(paired_test(rows < ours, rows < theirs), 100, "accuracy")
    assert found == f"On 100 rows {said}"


def test_where_the_baseline_is_better_the_report_says_what_to_do(tmp_path):
    folder = RunFolder(tmp_path / "my run")
    told = what_next(folder, kept=True)
    assert told.startswith(
        f"The baseline is better here: use it with `glassformer predict '{folder.path}'"
    )
    assert told.endswith(
        "--baseline`, or try more rows (--curve tells whether they would help), another --size, a "
        "longer --time."
    )
    folder.pretrain.path.mkdir(parents=True)
    assert what_next(folder, kept=False).startswith("The baseline is better here: try more rows")
    assert what_next(folder, kept=False).endswith("a longer --time, --no-pretrain.")


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
    assert verdict(found, 10, goal).endswith(said)


@pytest.mark.parametrize("name", ["added", "back_translated"])
def test_added_rows_are_told_also_of_runs_of_earlier_versions(name, tmp_path):
    shared = {"test": {"count": 7, "first": "clips.csv row 3"}}
    (tmp_path / "intake.json").write_text(json.dumps({name: ["5 rows added"], "shared": shared}))
    added, twice = intake_notes(RunFolder(tmp_path), "recording")
    assert added == "5 rows added."
    assert twice.startswith("7 recordings of the test split are also in the training split")
