"""`glassformer evaluate`: scores with intervals on new data, and two runs against each other."""

import json
import shutil

import pytest
import torch
from quick import quickly
from small_files import SHORT, reviews, shared, train, trained, write_csv

from glassformer.cli import main
from glassformer.runs import run as run_module
from glassformer.runs.folder import RunFolder
from glassformer.training.machine import Machine


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return trained(tmp_path_factory)


@pytest.fixture(scope="module")
def others(home, tmp_path_factory):
    """A run that learned less, one with other labels, and one that does another job."""

    def make(folder):
        data = home / "reviews.csv"
        assert train(data, folder / "worse", "--seed", 1, "--steps", 1) == 0
        rows = (row | {"label": row["label"].upper()} for row in reviews())
        assert train(write_csv(folder / "loud.csv", rows), folder / "loud") == 0
        words = ["--run", str(folder / "texts"), *SHORT]
        assert main(["train", "pretrain", str(data), *words]) == 0

    return shared("others", tmp_path_factory, make)


def evaluate(*words):
    return main(["evaluate", *map(str, words)])


def test_json_has_every_score_with_its_interval(home, capsys):
    assert evaluate(home / "run", home / "test.csv", "--json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert found["rows"] == 41
    assert {"accuracy", "macro_f1"} <= found["scores"].keys()
    for name, score in found["scores"].items():
        assert {"value", "low", "high"} <= score.keys()
        if score["low"] is None:  # 41 rows are too few for this one
            assert (name, score["interval"]) == ("macro_f1", None)
            assert score["reason"] == "too few rows for an interval: 41, of at least 50"
        else:
            assert 0 <= score["low"] <= score["value"] <= score["high"] <= 1
        assert found[name] == score
    assert found["scores"]["accuracy"]["value"] > 0.9
    assert "against" not in found


def test_the_accuracy_is_the_share_of_right_predictions(home, capsys):
    assert evaluate(home / "run", home / "test.csv", "--json") == 0
    scored = json.loads(capsys.readouterr().out)["scores"]["accuracy"]["value"]
    rows = list(reviews(41, seed=2))
    assert main(["predict", str(home / "run"), *(row["text"] for row in rows)]) == 0
    said = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    right = [label == row["label"] for label, row in zip(said, rows, strict=True)]
    assert scored == pytest.approx(sum(right) / len(right))


def test_int8_is_for_a_cpu(home, capsys, monkeypatch):
    made = []
    twin = run_module.int8_twin
    monkeypatch.setattr(run_module, "int8_twin", lambda model: made.append(twin(model)) or made[-1])
    assert evaluate(home / "run", home / "test.csv", "--json", "--int8") == 0
    assert json.loads(capsys.readouterr().out)["scores"]["accuracy"]["value"] > 0.9
    assert main(["predict", str(home / "run"), "fine", "--int8"]) == 0
    assert len(made) == 2
    capsys.readouterr()
    gpu = Machine(torch.device("cuda"), torch.bfloat16)
    monkeypatch.setattr(run_module, "choose_machine", lambda config: gpu)
    assert evaluate(home / "run", home / "test.csv", "--int8") == 1
    assert "int8 is for a CPU, but this machine uses cuda; choose" in capsys.readouterr().err


def test_for_people_it_is_a_table(home, capsys):
    assert evaluate(home / "run", home / "test.csv") == 0
    out, err = capsys.readouterr()
    assert "On 41 rows" in out
    assert "accuracy" in out
    assert err == ""


def test_against_another_run_it_tells_by_how_much_and_how_surely(home, others, capsys):
    words = [home / "run", home / "test.csv", "--against", others / "worse"]
    assert evaluate(*words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    there = found["against"]["accuracy"]
    difference = there["difference"]
    assert 0 < difference["low"] <= difference["value"] <= difference["high"]
    assert 0 < there["p_value"] < 0.05
    assert evaluate(others / "worse", home / "test.csv", "--against", home / "run", "--json") == 0
    back = json.loads(capsys.readouterr().out)["against"]["accuracy"]
    assert back["difference"]["value"] == -difference["value"]
    assert back["p_value"] == there["p_value"]
    assert evaluate(*words) == 0
    assert "accuracy, run minus worse: " in capsys.readouterr().out


def test_the_other_run_has_a_line_in_the_table(home, others, capsys):
    assert evaluate(others / "worse", home / "test.csv", "--json") == 0
    worse = json.loads(capsys.readouterr().out)["scores"]
    words = (home / "run", home / "test.csv", "--against", others / "worse")
    assert evaluate(*words) == 0
    [line] = [one for one in capsys.readouterr().out.splitlines() if "│ worse" in one]
    assert "│ {value:.3f} [{low:.3f}, {high:.3f}] │".format(**worse["accuracy"]) in line
    assert evaluate(*words, "--json") == 0
    assert json.loads(capsys.readouterr().out)["against_scores"] == worse


def test_runs_of_one_name_are_told_apart_by_their_paths(home, others, tmp_path, capsys):
    other = tmp_path / "run"
    shutil.copytree(others / "worse", other)
    assert evaluate(home / "run", home / "test.csv", "--against", other) == 0
    out = capsys.readouterr().out
    assert f"accuracy, {home / 'run'} minus {other}: +" in out
    assert f"│ {other} " in out


def test_against_itself_nothing_differs(home, capsys):
    assert evaluate(home / "run", home / "test.csv", "--against", home / "run", "--json") == 0
    for found in json.loads(capsys.readouterr().out)["against"].values():
        assert (found["difference"]["value"], found["p_value"]) == (0, 1)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("loud", "has different output labels than {ours}; compare two runs with the same ones"),
        ("texts", "its job is pretrain, not classify; compare two runs of the same job"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(other, told, home, others, capsys):
    assert evaluate(home / "run", home / "test.csv", "--against", others / other) == 1
    told = f"{others / other}: {told.format(ours=home / 'run')}"
    assert capsys.readouterr() == ("", f"glassformer: {told}\n")


def test_runs_that_read_different_rows_are_refused(home, tmp_path, capsys):
    rows = [
        {"text": "" if n < 3 else row["text"], "title": row["text"], "label": row["label"]}
        for n, row in enumerate(reviews())
    ]
    data = write_csv(tmp_path / "two.csv", rows)
    with quickly():
        for column in ("text", "title"):
            assert train(data, tmp_path / column, "--columns", f"text={column}") == 0
    capsys.readouterr()
    assert evaluate(tmp_path / "text", data, "--against", tmp_path / "title") == 1
    assert "reads different rows or labels" in capsys.readouterr().err


def test_rows_left_out_are_counted(home, tmp_path, capsys):
    rows = [row | {"text": " " if n % 3 == 0 else row["text"]} for n, row in enumerate(reviews(31))]
    data = write_csv(tmp_path / "gaps.csv", rows)
    assert evaluate(home / "run", data, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["skipped"]) == (20, {"empty text": 11})
    assert evaluate(home / "run", data) == 0
    assert "left out: 11 rows with empty text" in capsys.readouterr().out


def test_the_columns_that_were_trained_on_are_read_again(tmp_path, capsys):
    """Here the names alone would lead to other columns."""
    rows = [{"label": r["text"], "text": r["label"], "n": n} for n, r in enumerate(reviews())]
    data = write_csv(tmp_path / "odd.csv", rows)
    with quickly():
        assert train(data, tmp_path / "run", "--columns", "text=label,label=text") == 0
    capsys.readouterr()
    assert evaluate(tmp_path / "run", data, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 113


def test_other_names_of_columns_are_guessed(home, tmp_path, capsys):
    rows = ({"review": row["text"], "sentiment": row["label"]} for row in reviews(23))
    assert evaluate(home / "run", write_csv(tmp_path / "other.csv", rows), "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 23


def test_an_encoding_that_was_trained_with_is_used_again(tmp_path, capsys):
    rows = [row | {"text": row["text"] + " café"} for row in reviews()]
    data = write_csv(tmp_path / "old.csv", rows)
    data.write_bytes(data.read_text(encoding="utf-8").encode("cp1252"))
    with quickly():
        assert train(data, tmp_path / "run", "--set", "data.encoding=cp1252") == 0
    capsys.readouterr()
    assert evaluate(tmp_path / "run", data, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 113


BAD = {
    "a label it never saw": (
        "text,label\nfine,mauve\nodd,purple\n",
        "row 1 (line 2): no row has a label that the model knows; found mauve, purple; its labels",
    ),
    "no labels": ("text\nfine\n", "no column for label"),
    "no rows": ("text,label\n", "a header (text, label) but no rows below it"),
    "nothing": ("", "the file is empty"),
}


def test_labels_it_never_saw_are_counted_by_name_and_the_rest_is_scored(home, tmp_path, capsys):
    rows = [*reviews(20, seed=2), *({"text": "odd", "label": "purple"} for _ in range(2))]
    rows[3]["label"] = "mauve"
    data = write_csv(tmp_path / "new.csv", [{k: row[k] for k in ("text", "label")} for row in rows])
    assert evaluate(home / "run", data, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 19
    assert found["notes"][0] == (
        f"left out: 3 rows with labels that the model never saw: 'purple' (2), 'mauve' (1); "
        f"first {data} row 4 (line 5)"
    )
    [table] = found["tables"]
    assert (table["title"], table["header"][0]) == ("By class", "class")
    assert sum(row[-1] for row in table["rows"]) == 19
    assert evaluate(home / "run", data) == 0
    out = capsys.readouterr().out
    assert "On 19 rows" in out
    assert "By class" in out


@pytest.mark.parametrize("case", BAD)
def test_data_that_cannot_be_scored_are_refused_in_one_line(case, home, tmp_path, capsys):
    content, told = BAD[case]
    (tmp_path / "bad.csv").write_text(content, encoding="utf-8")
    assert evaluate(home / "run", tmp_path / "bad.csv") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"glassformer: {tmp_path / 'bad.csv'}")
    assert told in err
    assert err.count("\n") == 1


def test_a_run_may_be_called_anything(home, tmp_path, capsys):
    odd = tmp_path / "[red]my run"
    shutil.copytree(home / "run", odd)
    assert evaluate(odd, home / "test.csv") == 0
    assert "[red]my run" in capsys.readouterr().out
    assert main(["runs", "list", str(tmp_path)]) == 0
    assert "[red]my run" in capsys.readouterr().out


def test_rows_it_was_trained_on_are_told(home, capsys):
    assert evaluate(home / "run", home / "reviews.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    counts = RunFolder(home / "run").intake()["counts"]
    assert counts["train"] + counts["valid"] <= found["trained_on"] < found["rows"]
    assert evaluate(home / "run", home / "reviews.csv") == 0
    assert (
        "rows were in the training or validation data; the scores are optimistic"
        in capsys.readouterr().out
    )


def test_columns_can_be_named(home, tmp_path, capsys):
    rows = [{"a": row["text"], "b": row["label"], "c": row["label"]} for row in reviews(20, seed=5)]
    data = write_csv(tmp_path / "other.csv", rows)
    assert evaluate(home / "run", data, "--columns", "text=a,label=c", "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 20


def test_whether_the_first_row_is_a_header_can_be_said_and_is_shown(home, tmp_path, capsys):
    rows = [(row["text"], row["label"]) for row in reviews(31)]
    table = tmp_path / "x.csv"
    table.write_text("\n".join(f"{text},{label}" for text, label in [("blurb", "good"), *rows]))
    for options, header, count in (([], "no", 32), (["--header", "yes"], "yes", 31)):
        assert evaluate(home / "run", table, *options) == 0
        out = capsys.readouterr().out
        assert f"; header: {header}" in out
        assert f"On {count} rows" in out


def test_rows_of_one_group_count_as_one_in_scores_and_comparisons(home, others, tmp_path, capsys):
    words = (home / "run", write_csv(tmp_path / "many.csv", reviews(150, seed=9)))
    grouped = ("--columns", "group=film", "--against", others / "worse")
    assert evaluate(*words, *grouped, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert "Intervals and p-values go by group: 150 rows of 30 groups." in found["notes"]
    assert found["against"]["accuracy"]["units"] == 30
    assert evaluate(*words, "--json") == 0
    alone = json.loads(capsys.readouterr().out)["scores"]
    assert alone["accuracy"]["value"] == pytest.approx(found["scores"]["accuracy"]["value"])
    assert not any(alone[name] == found["scores"][name] for name in alone)
    few = write_csv(tmp_path / "few.csv", reviews(20, seed=9))
    assert evaluate(home / "run", few, *grouped) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "too few groups for an interval: 4, of at least 5" in shown
    assert "too few groups for a comparison: 4, of at least 8" in shown
    assert evaluate(*words, "--columns", "group=fim") == 1
    assert "has no column 'fim' to group rows by" in capsys.readouterr().err
