"""The verbs in Python: their arguments, and rows that are held in memory."""

import csv
import inspect

import pandas
import polars
import pytest
from quick import quickly
from small_runs import same, weights, write_reviews

import glassformer
from glassformer import GlassformerError
from glassformer.cli.options import train_options
from glassformer.runs.arguments import training_arguments

IN_PYTHON = {"settings": "set", "origin": "from_"}
SMALL = {
    "model.encoder.dim": 16,
    "model.encoder.depth": 1,
    "model.encoder.attention.heads": 2,
    "train.validate_every": 100,
    "train.optimiser.lr": 1e-2,
}


def learn(data, run, **given):
    usual = {"steps": 3, "pretrain": False, "quiet": True, "set": SMALL}
    return glassformer.train("classify", data, run=run, **usual | given)


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """The same rows in a file, as dicts and as pairs."""
    path = write_reviews(tmp_path_factory.mktemp("reviews") / "reviews.csv")
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return path, rows, [(row["text"], row["label"]) for row in rows]


@pytest.mark.parametrize("verb", [glassformer.train, glassformer.plan])
def test_the_arguments_are_those_of_the_command_line(verb):
    options = [IN_PYTHON.get(name, name) for name in inspect.signature(train_options).parameters]
    arguments = inspect.signature(verb).parameters
    assert [name for name in arguments if name not in ("model", "quiet")] == options
    described = inspect.getdoc(verb)
    assert all(f"{name}:" in described or f"{name}, " in described for name in arguments)
    assert arguments["steps"].annotation == int | None


def test_a_misspelt_argument_is_refused_with_the_closest_one(reviews, tmp_path):
    for verb in (glassformer.train, glassformer.plan):
        with pytest.raises(GlassformerError, match=r"'stepz'; did you mean 'steps'\?"):
            verb("classify", reviews[0], stepz=3)
    with pytest.raises(GlassformerError, match=r"'colums'; did you mean 'columns'\?"):
        glassformer.doctor(reviews[0], colums="text=a")
    for verb in (glassformer.load, glassformer.resume):
        with pytest.raises(GlassformerError, match=r"'modle'; did you mean 'model'\?"):
            verb(tmp_path, modle=None)


def test_rows_train_the_same_model_wherever_they_come_from(reviews, tmp_path):
    path, rows, pairs = reviews
    given = {"file": path, "pairs": pairs, "frame": pandas.DataFrame(rows)}
    with quickly():
        for name, data in given.items():
            run = learn(data, tmp_path / name)
            assert same(weights(tmp_path / name), weights(tmp_path / "file"))
    assert run.folder.command().startswith("glassformer.train('classify', <the DataFrame>, run=")
    assert run.config.data.files == ("the DataFrame",)


def test_settings_are_a_dict_a_text_or_texts(reviews, tmp_path):
    for given in ({"train.clip": 0.5}, "train.clip=0.5", ["train.clip=0.5"]):
        request, _ = training_arguments("classify", "x.csv", set=given)
        assert request.settings == ("train.clip=0.5",)
    written = {"a": "x|y", "b": None, "c": True, "d": tmp_path, "e": [1, 2]}
    request, _ = training_arguments("classify", "x.csv", set=written)
    assert request.settings == ('a="x|y"', "b=none", "c=true", f'd="{tmp_path}"', "e=[1, 2]")


def test_validation_and_test_rows_are_evaluated_and_named(reviews, tmp_path):
    _, rows, pairs = reviews
    with quickly():
        run = learn(
            rows[:60], tmp_path / "run", valid=pairs[60:80], test=[*pairs[80:], ("", "bad")]
        )
    assert run.config.data.valid == ("the validation list",)
    assert run.folder.intake()["skipped"]["empty text"]["first"] == "row 18 of the test list"
    with pytest.raises(GlassformerError, match="evaluate needs data; give a file, a folder or"):
        run.evaluate()
    found = run.evaluate(pairs[80:])
    assert sum(found.ingest.counts.values()) == 17
    assert (
        found.as_values()["scores"]
        == run.evaluate(pandas.DataFrame(rows[80:])).as_values()["scores"]
    )


def test_rows_of_a_table_are_predicted_like_their_texts(reviews, tmp_path):
    _, rows, pairs = reviews
    with quickly():
        run = learn(pairs, tmp_path / "run")
    texts = [row["text"] for row in rows[:3]]
    expected = [one.confidence for one in run.predict(texts)]
    frame = pandas.DataFrame(rows[:3])
    for given in (rows[:3], frame, frame["text"], polars.DataFrame(rows[:3]), frame[["text"]]):
        assert [one.confidence for one in run.predict(given)] == pytest.approx(expected)


def test_an_interrupted_run_over_a_list_is_resumed_without_it(reviews, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with quickly():
        learn(reviews[2], tmp_path / "peace")
        with monkeypatch.context() as patch:
            patch.setattr("glassformer.runs.fit.keep_weights", stop)
            with pytest.raises(KeyboardInterrupt):
                learn(reviews[2], tmp_path / "stopped")
        glassformer.resume(tmp_path / "stopped", quiet=True)
    assert same(weights(tmp_path / "peace"), weights(tmp_path / "stopped"))


def test_a_run_over_a_list_is_named_after_its_job(reviews):
    names = [training_arguments("classify", data)[0].name for data in (reviews[1], "films.csv")]
    assert names == ["classify", "films.csv"]


def test_the_doctor_examines_rows_and_copies_them(reviews, tmp_path):
    rows = [*reviews[1], reviews[1][0]]
    found = glassformer.doctor(rows, job="pretrain", quiet=True)
    (finding,) = (one for one in found.findings if one.kind == "duplicate rows")
    assert finding.rows == ("row 98 of the list",)
    copied = found.fix(tmp_path / "clean.jsonl")
    assert copied.kept == len(rows) - 1
    wrote = f"wrote {tmp_path / 'clean.jsonl'} in UTF-8, from the list"
    assert repr(copied).splitlines() == [wrote, "left out: 1 row, duplicate", "kept: 97 rows"]
    assert "<td>row 98 of the list</td><td>left out: duplicate</td>" in copied._repr_html_()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda rows: glassformer.train(),
            "train: missing a required argument: 'job'; help(train)",
        ),
        (
            lambda rows: glassformer.load("a", "b"),
            "load: too many positional arguments; help(load)",
        ),
        (lambda rows: glassformer.train("classify"), "no data given; name a file, a folder or"),
        (lambda rows: glassformer.doctor(pandas.Series(["a"])), "or an Arrow table, got Series"),
        (lambda rows: glassformer.doctor({"text": ["a"]}), "or an Arrow table, got dict"),
        (
            lambda rows: glassformer.train("classify", rows, device="gpu"),
            "unknown machine.device 'gpu'; use cuda, or mps on a Mac",
        ),
    ],
)
def test_a_wrong_call_is_refused_in_words(call, told, reviews, without_shape_hook):
    with pytest.raises(GlassformerError) as error:
        call(reviews[1])
    assert told in str(error.value)


def test_data_without_a_job_say_so(reviews, without_shape_hook):
    with pytest.raises(GlassformerError, match="the job comes first, got list; give one of class"):
        glassformer.train(reviews[1])
