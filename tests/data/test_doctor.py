"""The doctor finds each fault that was planted, and names its rows."""

from time import process_time

import pytest
from ailing import examined, found_in, reviews, table

from glassformer.data.doctor.check import Specimen
from glassformer.data.doctor.default_checks import RepeatedSamples
from glassformer.data.sources import read_rows
from glassformer.errors import GlassformerError


@pytest.fixture
def rows():
    return list(reviews())


def test_empty_rows_are_told_by_what_they_lack(tmp_path, rows):
    rows[6]["text"], rows[11]["text"], rows[20]["label"] = "", " \t", ""
    path = table(tmp_path / "x.csv", rows)
    found = [f for f in examined(path).findings if f.kind == "empty rows"]
    assert {f.what: f.rows for f in found} == {
        "2 rows with empty text": (f"{path} row 7 (line 8)", f"{path} row 12 (line 13)"),
        "1 row with empty label": (f"{path} row 21 (line 22)",),
    }
    assert {f.severity for f in found} == {"warning"}
    assert examined(path).rows == {"train": 57}


def test_duplicates_are_told_whatever_their_case_and_spaces(tmp_path, rows):
    rows[30] = dict(rows[4])
    rows[41] = {"text": f" {rows[7]['text'].upper()} ", "label": rows[7]["label"]}
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "duplicate rows")
    assert numbers == [31, 42]
    assert finding.severity == "warning"
    assert finding.what == "2 rows (3.3%) that only repeat an earlier row"


def test_few_duplicates_among_many_rows_are_a_note(tmp_path):
    rows = list(reviews(211))
    rows[200] = dict(rows[3])
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "duplicate rows")
    assert (finding.severity, numbers) == ("note", [201])


@pytest.mark.parametrize(
    ("part", "severity", "count"), [("test", "error", 60), ("valid", "warning", 211)]
)
def test_rows_held_out_that_are_also_in_train_are_told(tmp_path, rows, part, severity, count):
    held_out = [*reviews(count - 1, seed=2), rows[17]]
    path = table(tmp_path / "x.csv", rows)
    other = table(tmp_path / "y.csv", held_out)
    (finding,) = examined(path, **{part: other}).findings
    assert finding.kind == "shared by splits"
    assert finding.severity == severity
    assert finding.rows == (f"{other} row {count} (line {count + 1})",)
    assert f"1 row of {part} " in finding.what
    assert finding.what.endswith("is also in train")


def test_parts_in_a_split_column_are_compared_as_well(tmp_path, rows):
    rows = [row | {"split": "test" if n % 3 == 0 else "train"} for n, row in enumerate(rows)]
    rows[58]["text"] = rows[6]["text"]
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "shared by splits")
    assert numbers == [7]
    assert finding.what.startswith("1 row of test")


def test_groups_in_two_parts_are_told(tmp_path, rows):
    films = [row | {"film": f"film {n // 5}"} for n, row in enumerate(rows)]
    held_out = [row | {"film": f"film {n // 5 + 10}"} for n, row in enumerate(reviews(60, seed=2))]
    path, test = table(tmp_path / "x.csv", films), table(tmp_path / "y.csv", held_out)
    finding, numbers = found_in(path, "shared groups", test=test, group="film")
    assert finding.what.startswith("2 groups both in train and")
    assert (finding.count, numbers) == (10, [1, 2, 3, 4, 5])
    assert not examined(path, test=test).findings


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
    told = examined(path, set=f"data.encoding={encoding}")
    assert not told.findings


def test_files_of_a_folder_in_another_encoding_are_found_and_converted(tmp_path, rows):
    for label in ("good", "bad"):
        (tmp_path / "x" / label).mkdir(parents=True)
    for number, row in enumerate(rows):
        text = row["text"] + " déjà" * (number % 3 == 0)
        (tmp_path / "x" / row["label"] / f"{number}.txt").write_text(text, encoding="cp1252")
    assert "encoding" in [f.kind for f in examined(tmp_path / "x").findings]
    (tmp_path / "x" / "good" / "utf.txt").write_text("voilà une fête", encoding="utf-8")
    found = examined(tmp_path / "x")
    (finding,) = [finding for finding in found.findings if finding.kind == "encoding"]
    assert finding.total == sum(number % 3 == 0 for number in range(len(rows)))
    assert str(tmp_path / "x" / "bad" / "15.txt") + " line 1" in finding.rows
    found.fix(tmp_path / "clean.jsonl")
    texts = [row["text"] for row in read_rows(tmp_path / "clean.jsonl")]
    assert "voilà une fête" in texts
    assert {rows[0]["text"] + " déjà", rows[1]["text"]} <= {*texts}


def test_what_training_refuses_in_a_file_of_two_encodings_is_found_once(tmp_path, rows):
    path = table(tmp_path / "x.csv", [row | {"text": row["text"] + " déjà"} for row in rows])
    with path.open("ab") as file:
        file.write("déjà vu,bad\n".encode("cp1252"))
    with pytest.raises(GlassformerError, match=r"line 62: not valid UTF-8 .* mixes encodings"):
        list(read_rows(path))
    (finding,) = examined(path).findings
    assert (finding.severity, finding.rows) == ("error", (f"{path} line 62",))


def test_equal_rows_are_looked_at_in_linear_time():
    check = RepeatedSamples(lambda sample: sample["label"], one_answer=True)
    for number in range(30_011):
        check.see(Specimen(number, "train", {"label": "a"}, 7))
    began = process_time()
    assert len(check.to_drop()) == 30_010
    assert process_time() - began < 2.0
