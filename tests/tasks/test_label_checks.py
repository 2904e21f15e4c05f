"""Labels that cannot be learned, or that contradict each other, are told by row."""

import json

import pytest
from ailing import examined, found_in, reviews, table

from glassformer.data.doctor.examination import examine_samples
from glassformer.data.ingest import ingest
from glassformer.runs.request import TrainRequest
from glassformer.tasks.classify.data import ClassifySchema


@pytest.fixture
def rows():
    return list(reviews())


def test_a_text_with_two_labels_is_a_conflict_and_no_duplicate(tmp_path, rows):
    rows[30] = {"text": rows[4]["text"], "label": "bad"}
    path = table(tmp_path / "x.csv", rows)
    finding, numbers = found_in(path, "conflicting labels")
    assert (finding.count, numbers) == (2, [5, 31])
    assert [f.kind for f in examined(path).findings] == ["conflicting labels"]


def test_several_labels_are_the_same_in_any_order(tmp_path):
    rows = [{"text": f"text number {n}", "label": ["a", "b"][: 1 + n % 2]} for n in range(30)]
    rows += [{"text": "text number 1", "label": ["b", "a"]}]
    rows += [{"text": "text number 3", "label": ["b"]}]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert found_in(path, "duplicate rows")[1] == [31]
    assert found_in(path, "conflicting labels")[1] == [4, 32]


def test_labels_with_a_separator_are_several(tmp_path):
    rows = [{"text": f"text number {n}", "label": ("a", "a;b", "b")[n % 3]} for n in range(30)]
    rows += [{"text": "text number 1", "label": "b; a"}]
    path = table(tmp_path / "x.csv", rows)
    separated = examined(path, set="task.separator=;")
    assert separated.figures["labels"] == {"a": 21, "b": 21}
    assert [f.kind for f in separated.findings] == ["duplicate rows"]
    found = examined(path)  # where nothing names the separator
    assert [f.kind for f in found.findings] == ["duplicate rows", "several labels"]
    assert (found.to_drop, found.figures) == (separated.to_drop, separated.figures)


def test_a_word_gives_one_of_several_labels_away_where_their_separator_was_found(tmp_path):
    labels = ("a", "b", "a;b")
    rows = [
        {"text": f"text {n}" + " zulu" * ("a" in label), "label": label}
        for n, label in enumerate(labels * 30)
    ]
    finding, _ = found_in(table(tmp_path / "x.csv", rows), "leaking word")
    assert "'zulu' is in 100% of the texts of 'a'" in finding.what


def test_labels_that_cannot_be_learned_are_errors(tmp_path, rows):
    rows[12]["label"] = "purple"
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "rare labels")
    assert (finding.severity, numbers) == ("error", [13])
    assert "(purple)" in finding.what
    one = table(tmp_path / "y.csv", [row | {"label": "good"} for row in rows])
    finding, numbers = found_in(one, "one label", columns="text=text,label=label")
    assert (finding.severity, numbers) == ("error", [1])
    many = [{"text": f"text {n}", "label": f"all {n // 2}"} for n in range(2200)]
    finding, numbers = found_in(table(tmp_path / "z.csv", many), "too many labels", job="classify")
    assert (finding.severity, finding.count, numbers[0]) == ("error", 200, 2001)


def test_labels_that_are_only_held_out_are_told(tmp_path, rows):
    held_out = [*reviews(20, seed=2)]
    held_out[3]["label"] = held_out[8]["label"] = "odd"
    path, test = table(tmp_path / "x.csv", rows), table(tmp_path / "y.csv", held_out)
    finding, numbers = found_in(path, "labels not in train", test=test)
    assert (finding.count, numbers) == (2, [4])


def test_a_label_in_two_spellings_is_told(tmp_path, rows):
    rows[14]["label"] = rows[16]["label"] = "Good"
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "label spellings")
    assert (finding.count, numbers) == (2, [15])
    assert "'good' and 'Good'" in finding.what
    assert finding.severity == "warning"


def test_a_rare_spelling_that_training_refuses_is_an_error_and_told_once(tmp_path, rows):
    rows[14]["label"] = "Good"
    (finding,) = examined(table(tmp_path / "x.csv", rows)).findings
    assert (finding.kind, finding.severity) == ("label spellings", "error")


def test_a_label_of_nearly_all_rows_is_told(tmp_path):
    rows = [row | {"label": "ham" if n % 30 else "spam"} for n, row in enumerate(reviews(210))]
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "unbalanced labels")
    assert finding.what == "96.7% of the rows have the label 'ham'"
    assert numbers == [1]


def brief(folder, rows, **limits):
    """A look at the samples that a run would store."""
    config = TrainRequest(job="classify", data=(str(table(folder / "x.csv", rows)),)).resolve()
    schema = ClassifySchema()
    samples, _ = ingest(config.data, schema, folder / "data")
    return examine_samples(samples, schema, config.data, schema.checks(config), **limits)


def test_before_a_training_the_samples_are_looked_at(tmp_path, rows):
    rows[30] = {"text": rows[4]["text"], "label": "bad"}
    found = brief(tmp_path, rows)
    (alarm,) = found.alarms
    path = tmp_path / "x.csv"
    assert alarm.line == (
        f"warning: 1 input in 2 rows with different labels (first {path} row 5 (line 6)); decide "
        f"which label is right; --fix keeps a clear majority, or drops all"
    )
    assert alarm.rows == (f"{path} row 5 (line 6)", f"{path} row 31 (line 32)")
    assert (found.seen, found.total, sum(found.rows.values())) == (60, 60, 60)
    with pytest.raises(ValueError, match="samples of a run were examined"):
        found.fix(tmp_path / "y.csv")


@pytest.mark.parametrize("limits", [{"most_rows": 35}, {"most_bytes": 7000}])
def test_of_many_samples_some_are_looked_at_and_rare_labels_are_not_judged(tmp_path, rows, limits):
    rows[30]["label"] = "purple"
    assert [f.kind for f in brief(tmp_path, rows).findings] == ["rare labels"]
    found = brief(tmp_path, rows, **limits)
    assert found.seen < found.total == 60
    assert found.seen >= 20
    assert not found.findings
