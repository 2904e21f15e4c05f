"""`glassformer predict` on tables: their columns, answers beside their rows, and vectors."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import glassformer as gf
from glassformer.cli import main
from glassformer.cli.answer_files import for_people

FIXTURES = Path(__file__).parents[1] / "fixtures"
TEXTS = ["a bright film by the sea", "", "the slow book", "雪"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a run that was trained on a column `Review`, and a table that has one."""
    run = tmp_path / "run"
    shutil.copytree(FIXTURES / "runs" / "classify", run)
    intake = (run / "intake.json").read_text(encoding="utf-8")
    (run / "intake.json").write_text(intake.replace('"text": "text"', '"text": "Review"'))
    (run / "checksums.json").unlink(missing_ok=True)
    shutil.copytree(FIXTURES / "inputs", tmp_path / "pictures")
    rows = [
        {"id": f"{n}", "Title": "the sea", "Review": text, "label": "fine", "extra": extra}
        for n, (text, extra) in enumerate(zip(TEXTS, ["=1+1", "-0.5", "@a", "+b"], strict=True))
    ]
    with (tmp_path / "new.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_in(path, delimiter=","):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_a_table_is_answered_from_the_column_of_training_which_is_said(here, capsys):
    assert main(["predict", "run", "@new.csv"]) == 0
    out, err = capsys.readouterr()
    run = gf.load("run")
    first, third = (run.predict(text).text for text in (TEXTS[0], TEXTS[2]))
    assert out.splitlines() == [first, "", third, "?"]
    assert err.splitlines()[0] == "glassformer: new.csv: read 'Review' as text; header: yes"
    assert "glassformer: empty, and so without an answer: 1 of 4 inputs" in err


def test_another_column_is_read_where_it_is_named(here, capsys):
    assert main(["predict", "run", "@new.csv", "--columns", "text=Title"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{gf.load('run').predict('the sea').text}\n" * 4
    assert err == "glassformer: new.csv: read 'Title' as text; header: yes\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["@other.csv"],
            "other.csv: has no column 'Review', which the run learned its text from, ",
        ),
        (["@other.csv"], "only a, b; name the one to read with --columns text=..."),
        (["a", "--columns", "text=a"], "--columns is for the rows of a table, given as @FILE"),
        (["a", "--header", "yes"], "--header is for the rows of a table, given as @FILE"),
        (["@new.csv", "--header", "maybe"], "--header must be yes or no, got 'maybe'"),
        (["@new.csv", "--out", "new.csv"], "--out new.csv: is also read; name another file"),
        (["@new.csv", "--out", "a.xlsx"], "unknown format '.xlsx'; end the name in .csv, .tsv, "),
        (["@new.csv", "--out", "a.npy"], "unknown format '.npy'; end the name in .csv, .tsv, "),
        (["@new.csv", "--out", "no/a.csv"], "no/a.csv: cannot be written"),
        (["@new.csv", "--out", "a.csv", "--json"], "--out leaves --json without effect"),
        (["@new.csv", "--embed", "--baseline"], "--embed leaves --baseline without effect"),
    ],
)
def test_what_cannot_be_read_or_written_is_refused(words, told, here, capsys):
    (here / "other.csv").write_text("a,b\nx y,1\nz w,2\n")
    assert main(["predict", "run", *words]) == 1
    assert told in capsys.readouterr().err
    assert not (here / "a.csv").exists()


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_answers_stand_beside_the_rows_of_a_table(suffix, delimiter, here, capsys):
    out = here / f"answers{suffix}"
    assert main(["predict", "run", "@new.csv", "--out", str(out)]) == 0
    printed, err = capsys.readouterr()
    assert printed == ""
    assert f"glassformer: wrote {out}: 4 rows\n" in err
    found = rows_in(out, delimiter)
    assert [row["id"] for row in found] == ["0", "1", "2", "3"]
    assert {row["label"] for row in found} == {"fine"}  # of the table, not the answer
    run = gf.load("run")
    for row in (found[0], found[2]):
        expected = run.predict(row["Review"])
        assert row["prediction"] == expected.text
        assert float(row["confidence"]) == pytest.approx(expected.confidence)
        assert float(row["probabilities.fine"]) == pytest.approx(
            expected.details["probabilities"]["fine"]
        )
    assert [found[1][name] for name in ("prediction", "confidence", "note")] == ["", "", "empty"]
    assert found[3]["prediction"] == ""
    assert "of this text was seen in training" in found[3]["note"]


def test_cells_that_a_spreadsheet_would_run_are_quoted_for_people_only(here):
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        assert main(["predict", "run", "@new.csv", "--out", name]) == 0
    assert [row["extra"] for row in rows_in(here / "a.csv")] == ["'=1+1", "-0.5", "'@a", "'+b"]
    values = [json.loads(line) for line in (here / "a.jsonl").read_text("utf-8").splitlines()]
    table = pyarrow.parquet.read_table(here / "a.parquet").to_pylist()
    for rows in (values, table):
        assert [row["extra"] for row in rows] == ["=1+1", "-0.5", "@a", "+b"]
        assert [row["id"] for row in rows] == [0, 1, 2, 3]  # numbers stay numbers
        assert [row["prediction"] is None for row in rows] == [False, True, False, True]
    assert values[0]["probabilities"].keys() == {"fine", "dull"}
    assert values[3]["unknown"]
    assert values[3]["guess"]["prediction"] in ("fine", "dull")


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        *(("=HYPERLINK(1)", "'=HYPERLINK(1)"), ("+49 30 12", "'+49 30 12"), ("-x", "'-x")),
        *(("@a", "'@a"), ("\t=1", "'\t=1"), ("-1e-05", "-1e-05"), ("-3", "-3"), ("+7.5%", "+7.5%")),
        *((-0.25, "-0.25"), ("- a list", "'- a list"), ("a=b", "a=b"), ("-1+1", "'-1+1")),
    ],
)
def test_a_formula_is_quoted_and_a_number_stays_one(cell, shown):
    assert for_people(cell) == shown


def test_a_row_that_cannot_be_answered_says_why_and_leaves_the_others_alone(here, capsys):
    (here / "list.csv").write_text("file\npictures/1.png\nnone.png\n\npictures/2.png\n")
    run = str(FIXTURES / "runs" / "recognise")
    assert main(["predict", run, "@list.csv", "--columns", "path=file", "--out", "a.csv"]) == 0
    first, missing, empty, last = rows_in(here / "a.csv")
    assert first["prediction"]
    assert last["prediction"]
    assert (missing["prediction"], empty["prediction"]) == ("", "")
    assert "none.png: not found" in missing["note"]
    assert empty["note"] == "empty"
    err = capsys.readouterr().err
    assert "1 row without an answer because of an error, which is in the column note" in err
    (here / "list.csv").write_text("file\nnone.png\n")
    assert main(["predict", run, "@list.csv", "--columns", "path=file", "--out", "b.csv"]) == 1
    assert "none.png: not found" in capsys.readouterr().err
    assert not (here / "b.csv").exists()


def test_a_table_is_one_whatever_its_name(here, capsys):
    (here / "Collection").write_text("7\tthe slow book\n8\tthe sea\n")
    assert main(["predict", "run", "@Collection", "--columns", "text=2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    (here / "lines.txt").write_text("the slow\tbook\nthe\tsea\n")  # texts, with tabs
    assert main(["predict", "run", "@lines.txt"]) == 0
    assert "read" not in capsys.readouterr().err
    assert main(["predict", "run", "@lines.txt", "--columns", "text=1", "--header", "no"]) == 0
    assert "lines.txt: read '1' as text; header: no" in capsys.readouterr().err


def test_columns_of_several_tables_stand_before_the_answers(here):
    (here / "other.csv").write_text("where is it,1\nthe slow book,2\n")
    words = ["@other.csv", "the sea", "--columns", "text=1"]
    assert main(["predict", "run", *words, "--out", "a.csv"]) == 0
    assert [row["1"] for row in rows_in(here / "a.csv")] == ["where is it", "the slow book", ""]
    (here / "other.csv").write_text("other,Review\n7,the slow book\n")
    assert main(["predict", "run", "@new.csv", "@other.csv", "--out", "b.csv"]) == 0
    rows = rows_in(here / "b.csv")
    assert list(rows[0])[:7] == ["id", "Title", "Review", "label", "extra", "other", "prediction"]
    assert [row["other"] for row in rows] == ["", "", "", "", "7"]


def test_lines_and_arguments_are_written_under_the_name_input(here, capsys):
    (here / "a.txt").write_text("Review\na film\n\n")
    assert main(["predict", "run", "the sea", "@a.txt", "--out", "a.csv"]) == 0
    assert [row["input"] for row in rows_in(here / "a.csv")] == ["the sea", "a film", ""]
    err = capsys.readouterr().err
    assert "a.txt line 1 is 'Review', the name of a column that the run reads" in err


@pytest.mark.parametrize("name", ["Review", "text"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_header_on_standard_input_is_not_answered(name, end, here, typed, capsys):
    with typed(f"{name}\nthe sea{end}".encode()):
        assert main(["predict", "run"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{gf.load('run').predict('the sea').text}\n"
    assert f"standard input line 1 is '{name}', the name of a column that the run reads" in err


def test_a_single_line_and_other_lines_are_no_header(here, typed, capsys):
    for lines in ("Review\n", "Revue\nReview\n"):
        with typed(lines.encode()):
            assert main(["predict", "run"]) == 0
        out, err = capsys.readouterr()
        assert len(out.splitlines()) == lines.count("\n")
        assert "header" not in err


def test_vectors_are_printed_as_json_or_written_beside_the_rows(here, capsys):
    assert main(["predict", "run", "@new.csv", "--embed"]) == 0
    out, err = capsys.readouterr()
    printed = [json.loads(line) for line in out.splitlines()]
    vectors = gf.load("run").embed(TEXTS)
    assert [one["input"] for one in printed] == TEXTS
    assert printed[1] == {"input": "", "embedding": None, "empty": True}
    assert printed[3]["unknown"] is True
    assert "empty, and so without a vector: 1 of 4 texts" in err
    assert "nothing in 1 of 4 texts was seen in training" in err
    np.testing.assert_allclose(printed[2]["embedding"], vectors[2], atol=1e-6)
    for name in ("v.npy", "v.csv", "v.parquet"):
        assert main(["predict", "run", "@new.csv", "--embed", "--out", name]) == 0
    np.testing.assert_allclose(np.load(here / "v.npy"), vectors, atol=1e-6)
    table = rows_in(here / "v.csv")
    assert [row["id"] for row in table] == ["0", "1", "2", "3"]
    assert [float(table[2][f"embedding.{n}"]) for n in range(vectors.shape[1])] == pytest.approx(
        vectors[2].tolist(), abs=1e-6
    )
    assert table[1]["embedding.0"] == ""
    listed = pyarrow.parquet.read_table(here / "v.parquet").to_pylist()
    assert listed[2]["embedding"] == pytest.approx(vectors[2].tolist(), abs=1e-6)
    assert listed[1]["embedding"] is None


def test_a_run_without_vectors_is_refused(here, capsys):
    assert main(["predict", str(FIXTURES / "runs" / "translate"), "one", "--embed"]) == 1
    assert "has no vectors to give; train classify or pretrain on texts" in capsys.readouterr().err
