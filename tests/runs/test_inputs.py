"""Inputs in the rows of tables: which columns a run reads, and what of them is missing."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pytest
from safetensors.numpy import save_file

import glassformer as gf
from glassformer import GlassformerError
from glassformer.data.rows import Row
from glassformer.runs.inputs import input_columns
from glassformer.tasks import JOBS

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
PICTURES = Path(__file__).parents[1] / "fixtures" / "inputs"


def loaded(job, tmp_path, **columns):
    """A run of an earlier version, trained on columns of other names."""
    folder = Path(shutil.copytree(RUNS / job, tmp_path / job))
    known = json.loads((folder / "intake.json").read_text(encoding="utf-8"))
    known["columns"] |= columns
    (folder / "intake.json").write_text(json.dumps(known), encoding="utf-8")
    (folder / "checksums.json").unlink(missing_ok=True)
    return gf.load(folder)


@pytest.fixture
def run(tmp_path):
    return loaded("classify", tmp_path, text="Review Text", label="Stars")


FRAME = pandas.DataFrame(
    {
        "Title": ["dull", "slow", "bright"],
        "Review Text": ["a bright film by the sea", None, "the slow book"],
        "Age": [30, 40, 50],
    }
)


def test_a_table_is_read_from_the_column_of_training_and_no_other(run):
    texts = FRAME["Review Text"]
    first, second, third = run.predict(FRAME)
    assert first.confidence == run.predict(texts[0]).confidence
    assert third.confidence == run.predict(texts[2]).confidence
    assert (second.text, second.empty) == ("", True)


@pytest.mark.parametrize("first", ["Meinung", "ein Buch"])
def test_a_single_line_above_texts_is_a_header_if_it_names_the_column(first, tmp_path):
    run = loaded("classify", tmp_path, text="Meinung")
    (tmp_path / "few.csv").write_text(f"{first}\nthe sea\nthe book\n")
    found = [given for _, given in run.table_inputs(str(tmp_path / "few.csv")).pairs]
    assert found == ["ein Buch"] * (first == "ein Buch") + ["the sea", "the book"]


def test_a_header_can_be_declared_or_denied(run, tmp_path):
    (tmp_path / "few.csv").write_text("the sea,text\nthe book,label\n")
    for header, column in (("yes", "the sea"), ("no", "1")):
        path, columns = str(tmp_path / "few.csv"), {"text": column}
        table = run.table_inputs(path, columns=columns, header=header)
        found = [given for _, given in table.pairs]
        assert found == ["the sea"] * (header == "no") + ["the book"]


def test_a_column_of_training_is_found_in_another_spelling(run):
    frame = FRAME.rename(columns={"Review Text": "review_text"})
    assert [one.text for one in run.predict(frame)] == [one.text for one in run.predict(FRAME)]


def test_a_table_without_the_column_of_training_is_refused_and_names_its_own(run):
    with pytest.raises(GlassformerError) as error:
        run.predict(FRAME[["Title", "Age"]])
    assert str(error.value) == (
        "the DataFrame: has no column 'Review Text', which the run learned its text from, only "
        'Title, Age; name the one to read with columns="text=..."'
    )


@pytest.mark.parametrize("columns", [{"text": "Title"}, "text=Title"])
def test_another_column_is_read_where_it_is_named(run, columns):
    found = run.predict(FRAME, columns=columns)
    assert [one.confidence for one in found] == [
        pytest.approx(run.predict(text).confidence) for text in FRAME["Title"]
    ]


def test_the_only_column_of_a_table_is_read(run):
    found = run.predict(FRAME[["Title"]])
    assert [one.text for one in found] == [run.predict(text).text for text in FRAME["Title"]]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("label=Age", "columns: label is not read to predict, only text; leave it out"),
        ("path=Title", "columns: path is not read to predict, only text; leave it out"),
        ("txt=Title", "unknown role 'txt'; did you mean 'text'?"),
        ("text=Titel", "the DataFrame: unknown column 'Titel'; did you mean 'Title'?"),
    ],
)
def test_columns_that_cannot_be_read_are_refused(run, columns, told):
    with pytest.raises(GlassformerError) as error:
        run.predict(FRAME, columns=columns)
    assert told in str(error.value)


def test_columns_without_a_table_are_refused(run):
    for given in (["a film"], "a film"):
        with pytest.raises(GlassformerError, match="columns is for the rows of a table; leave"):
            run.predict(given, columns="text=Title")


def test_missing_values_of_a_list_and_a_frame_have_the_same_empty_predictions(run):
    texts = [math.nan, None, "a film", "", pandas.NA]
    in_list, in_frame = run.predict(texts), run.predict(pandas.DataFrame({"Review Text": texts}))
    in_arrow = run.predict(pyarrow.table({"Review Text": [None, None, "a film", "", None]}))
    for found in (in_list, in_frame, in_arrow):
        assert [one.empty for one in found] == [True, True, False, True, True]
        assert found[2].text
    with pytest.raises(GlassformerError, match="predict takes a text or a list of texts, got None"):
        run.predict(None)


def test_a_run_that_does_not_know_its_columns_guesses_and_says_so(tmp_path, capsys):
    run = loaded("classify", tmp_path)
    (run.folder.path / "intake.json").unlink()
    found = run.predict(FRAME)
    assert [one.text for one in found] == [run.predict(text).text for text in FRAME["Title"]]
    assert capsys.readouterr().err == (
        "glassformer: the DataFrame: read 'Title' as text, a guess: this run does not know its "
        "columns; choose with --columns text=...\n"
    )


def test_missing_pictures_have_empty_predictions_in_their_places(tmp_path):
    run = loaded("recognise", tmp_path, path="file")
    one, two = str(PICTURES / "1.png"), str(PICTURES / "2.png")
    frame = pandas.DataFrame({"file": [one, None, "", two, None], "name": range(5)})
    found = run.predict(frame)
    assert [each.empty for each in found] == [False, True, True, False, True]
    assert [found[0].text, found[3].text] == [run.predict(one).text, run.predict(two).text]
    assert [each.empty for each in run.predict([None, one])] == [True, False]


def test_an_empty_prompt_starts_a_text_but_an_empty_cell_does_not(tmp_path):
    run = loaded("generate", tmp_path)
    short = {"set": "decode.max_length=3"}
    assert not run.predict("", **short).empty
    frame = pandas.DataFrame({"text": ["the", None], "id": [1, 2]})
    assert [one.empty for one in run.predict(frame, **short)] == [False, True]


@pytest.mark.parametrize(("similar", "column"), [(False, "who"), (True, "what")])
def test_a_recommender_needs_the_users_or_the_items_of_a_table(similar, column, tmp_path):
    run = loaded("recommend", tmp_path, user="who", item="what")
    options = {"similar": True} if similar else {}
    name = {"who": "u1", "what": "i1"}[column]
    frame = pandas.DataFrame({column: [name], "year": [1999]})
    assert run.predict(frame, **options)[0].text == run.predict(name, **options).text
    with pytest.raises(GlassformerError, match=f"has no column '{column}'"):
        run.predict(frame.rename(columns={column: "other"}), **options)


def test_every_needed_column_is_refused_if_it_is_not_there():
    roles = JOBS["translate"].schema.inputs().roles
    row = Row({"de": "x", "en": "y", "to": "en"}, "a.csv", 1)
    with pytest.raises(GlassformerError, match=r"a\.csv: has no column 'src', .* only de, en, to"):
        input_columns("a.csv", [row], roles, {"source": "src"}, {})
    found = input_columns("a.csv", [row], roles, {"source": "de"}, {})
    assert found == {"source": "de", "to": "to"}


def test_vectors_have_length_1_and_those_of_missing_texts_are_nan(run):
    one = run.embed("a bright film")
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-5)
    many = run.embed(["the slow book", None, "a bright film", " "])
    assert many.shape == (4, len(one))
    assert many.dtype == np.float32
    np.testing.assert_allclose(many[2], one, atol=1e-5)
    assert np.isnan(many).all(axis=1).tolist() == [False, True, False, True]
    np.testing.assert_allclose(
        run.embed(FRAME)[0], run.embed("a bright film by the sea"), atol=1e-5
    )
    named = run.embed(FRAME, columns={"text": "Title"})
    np.testing.assert_allclose(named[0], run.embed("dull"), atol=1e-5)
    assert run.embed([]).shape == (0, len(one))
    for wrong in (None, 5, {"text": "a"}):
        with pytest.raises(GlassformerError, match="takes a text or a list of texts, got"):
            run.embed(wrong)


def test_a_run_that_keeps_no_network_has_no_vectors_but_still_predicts(run):
    save_file({}, run.folder.model)
    alone = gf.load(run.folder.path)
    assert alone.predict("a bright film").text
    how = r"its network was not kept; to keep one, train with set=\"model.ngrams=no\"; vectors"
    with pytest.raises(GlassformerError, match=how):
        alone.embed("a bright film")


@pytest.mark.parametrize("job", ["recognise", "translate", "generate", "recommend", "transcribe"])
def test_a_run_without_vectors_says_which_have_some(job, tmp_path):
    run = loaded(job, tmp_path)
    with pytest.raises(GlassformerError, match="no vectors to give; train classify or pretrain"):
        run.embed(["a"])
