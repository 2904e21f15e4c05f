"""The doctor finds each fault that was planted, and names its rows."""

import json

import pytest
from ailing import examined, found_in, reviews, table

from glassformer.data.doctor import examine_samples, sampled
from glassformer.data.ingest import ingest
from glassformer.errors import GlassformerError
from glassformer.runs.asked import Asked
from glassformer.tasks.classify.task import ClassifyTask


@pytest.fixture
def rows():
    return list(reviews())


def test_empty_rows_are_told_by_what_they_lack(tmp_path, rows):
    rows[6]["text"], rows[11]["text"], rows[20]["label"] = "", " \t", ""
    path = table(tmp_path / "x.csv", rows)
    found = [f for f in examined(path).findings if f.kind == "empty rows"]
    assert {f.what: f.rows for f in found} == {
        "2 rows without a text": (f"{path} row 7", f"{path} row 12"),
        "1 row without a label": (f"{path} row 21",),
    }
    assert {f.severity for f in found} == {"warning"}
    assert examined(path).rows == {"train": 57}


def test_duplicates_are_told_whatever_their_case_and_spaces(tmp_path, rows):
    rows[30] = dict(rows[4])
    rows[41] = {"text": f" {rows[7]['text'].upper()} ", "label": rows[7]["label"]}
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "duplicate rows")
    assert numbers == [31, 42]
    assert finding.severity == "warning"
    assert finding.what == "2 rows (3.3%) that only repeat what was there before"


def test_few_duplicates_among_many_rows_are_a_note(tmp_path):
    rows = list(reviews(211))
    rows[200] = dict(rows[3])
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "duplicate rows")
    assert (finding.severity, numbers) == ("note", [201])


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
    separated = examined(path, settings="task.separator=;")
    assert separated.figures["labels"] == {"a": 21, "b": 21}
    assert [f.kind for f in separated.findings] == ["duplicate rows"]


@pytest.mark.parametrize(
    ("part", "severity", "count"), [("test", "error", 60), ("valid", "warning", 211)]
)
def test_rows_held_out_that_are_also_in_train_are_told(tmp_path, rows, part, severity, count):
    held_out = [*reviews(count - 1, seed=2), rows[17]]
    path = table(tmp_path / "x.csv", rows)
    other = table(tmp_path / "y.csv", held_out)
    (finding,) = examined(path, **{part: other}).findings
    assert finding.kind == "shared by parts"
    assert finding.severity == severity
    assert finding.rows == (f"{other} row {count}",)
    assert f"1 row of {part} " in finding.what
    assert finding.what.endswith("is also in train")


def test_parts_in_a_split_column_are_compared_as_well(tmp_path, rows):
    rows = [row | {"split": "test" if n % 3 == 0 else "train"} for n, row in enumerate(rows)]
    rows[58]["text"] = rows[6]["text"]
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "shared by parts")
    assert numbers == [7]
    assert finding.what.startswith("1 row of test")


def test_groups_in_two_parts_are_told(tmp_path, rows):
    films = [row | {"film": f"film {n // 5}"} for n, row in enumerate(rows)]
    held_out = [row | {"film": f"film {n // 5 + 10}"} for n, row in enumerate(reviews(60, seed=2))]
    path, test = table(tmp_path / "x.csv", films), table(tmp_path / "y.csv", held_out)
    finding, numbers = found_in(path, "shared groups", test=test, group="film")
    assert finding.what.startswith("2 groups in train")
    assert (finding.count, numbers) == (10, [1, 2, 3, 4, 5])
    assert not examined(path, test=test).findings


def test_lost_and_garbled_characters_are_told(tmp_path, rows):
    rows[8]["text"] += " caf\ufffd"
    rows[9]["text"] += " it’s a café".encode().decode("cp1252")
    rows[10]["text"] += " it’s a café, ÇA VÂ à l’âge"
    path = table(tmp_path / "x.csv", rows)
    assert found_in(path, "lost characters")[1] == [9]
    assert found_in(path, "garbled text")[1] == [10]


@pytest.mark.parametrize(
    ("word", "encoding"),
    [("déjà", "cp1252"), ("это", "cp1251"), ("文本分类", "gb18030")],
    ids=["western", "cyrillic", "chinese"],
)
def test_an_old_encoding_is_guessed_named_and_read(tmp_path, rows, word, encoding):
    rows = [row | {"text": f"{row['text']} {word}"} for row in rows]
    path = table(tmp_path / "x.csv", rows, encoding=encoding)
    found = examined(path)
    (finding,) = found.alarms
    assert (finding.kind, finding.severity) == ("encoding", "error")
    assert finding.rows == (f"{path} line 2",)
    assert f"it looks like {encoding}" in finding.what
    assert f"--set data.encoding={encoding}" in finding.advice
    assert found.encodings == {str(path): encoding}
    told = examined(path, settings=f"data.encoding={encoding}")
    assert not told.findings


def test_a_folder_is_read_by_a_guess_only_if_all_of_it_agrees(tmp_path, rows):
    for label in ("good", "bad"):
        (tmp_path / "x" / label).mkdir(parents=True)
    for number, row in enumerate(rows):
        text = row["text"] + " déjà" * (number % 3 == 0)
        (tmp_path / "x" / row["label"] / f"{number}.txt").write_text(text, encoding="cp1252")
    assert "encoding" in [f.kind for f in examined(tmp_path / "x").findings]
    (tmp_path / "x" / "good" / "utf.txt").write_text("voilà une fête", encoding="utf-8")
    with pytest.raises(GlassformerError, match=r"\d.txt line 1: not valid UTF-8 .* cp1252"):
        examined(tmp_path / "x")


def test_a_file_of_two_encodings_is_refused_with_its_line(tmp_path, rows):
    path = table(tmp_path / "x.csv", [row | {"text": row["text"] + " déjà"} for row in rows])
    with path.open("ab") as file:
        file.write("déjà vu,bad\n".encode("cp1252"))
    with pytest.raises(GlassformerError, match=r"line 62: not valid UTF-8 .* mixes encodings"):
        examined(path)


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


def test_a_label_of_nearly_all_rows_is_told(tmp_path):
    rows = [row | {"label": "ham" if n % 30 else "spam"} for n, row in enumerate(reviews(210))]
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "unbalanced labels")
    assert finding.what == "96.7% of the rows have the label 'ham'"
    assert numbers == [1]


@pytest.mark.parametrize(("long", "severity"), [(3, "note"), (30, "warning")])
def test_texts_that_are_not_read_to_the_end_are_told(tmp_path, rows, long, severity):
    for number in range(long):
        rows[2 * number]["text"] += f" {number}" * 60
    path = table(tmp_path / "x.csv", rows)
    finding, numbers = found_in(path, "cut short", settings="task.max_length=52")
    assert (finding.severity, finding.count, numbers[:2]) == (severity, long, [1, 3])
    assert "the 50 words that are read; the longest has 75" in finding.what
    for settings in (("task.max_length=77",), ("task.max_length=52", "task.long=windows")):
        assert "cut short" not in [f.kind for f in examined(path, settings=settings).findings]


def test_short_texts_are_counted_in_characters(tmp_path):
    rows = [{"text": f"name{'x' * (n % 7)}{n}", "label": "ab"[n % 2]} for n in range(60)]
    finding, _ = found_in(
        table(tmp_path / "x.csv", rows), "cut short", settings="task.max_length=10"
    )
    assert "the 8 characters that are read" in finding.what


def test_rows_in_the_order_of_their_labels_are_a_note(tmp_path, rows):
    rows.sort(key=lambda row: row["label"])
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "sorted by label")
    assert (finding.severity, numbers) == ("note", [1, 31])


def test_a_leak_is_found_in_a_sample_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(sampled, "MOST", 61)
    marked = [row | {"text": row["text"] + " xx" * (row["label"] == "bad")} for row in reviews(400)]
    finding, numbers = found_in(table(tmp_path / "x.csv", marked), "leaking word")
    assert 20 < finding.count < 41
    assert all(number % 2 == 0 for number in numbers)
    assert numbers == sorted(numbers)


def brief(folder, rows, **limits):
    """A look at the samples that a run would store."""
    config = Asked(job="classify", data=(str(table(folder / "x.csv", rows)),)).settle()
    samples, _ = ingest(config.data, ("text", "label"), folder / "data")
    return examine_samples(samples, ClassifyTask.checks(config), **limits)


def test_before_a_training_the_samples_are_looked_at(tmp_path, rows):
    rows[30] = {"text": rows[4]["text"], "label": "bad"}
    found = brief(tmp_path, rows)
    (alarm,) = found.alarms
    path = tmp_path / "x.csv"
    assert alarm.line == (
        f"warning: 1 text in 2 rows with different labels (first {path} row 5); decide which label "
        f"is right; --fix keeps a clear majority, else none"
    )
    assert alarm.rows == (f"{path} row 5", f"{path} row 31")
    assert (found.seen, found.total, sum(found.rows.values())) == (60, 60, 60)
    with pytest.raises(ValueError, match="samples of a run were examined"):
        found.fix(tmp_path / "y.csv")


@pytest.mark.parametrize("limits", [{"most_rows": 35}, {"most_bytes": 4000}])
def test_of_many_samples_some_are_looked_at_and_rare_labels_are_not_judged(tmp_path, rows, limits):
    rows[30]["label"] = "purple"
    assert [f.kind for f in brief(tmp_path, rows).findings] == ["rare labels"]
    found = brief(tmp_path, rows, **limits)
    assert found.seen < found.total == 60
    assert found.seen >= 20
    assert not found.findings
