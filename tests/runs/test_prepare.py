"""A run folder appears when it is whole, or not at all."""

import os
from collections import Counter
from pathlib import Path

import pytest
from quick import quickly
from small_runs import learn, write_reviews

from glassformer.data import samples
from glassformer.data.samples import StoredSample
from glassformer.errors import GlassformerError
from glassformer.runs import new_folder
from glassformer.runs.display import Display
from glassformer.runs.new_folder import free_name, under_temporary_name
from glassformer.runs.prepare import prepare as prepare_run
from glassformer.runs.request import TrainRequest
from glassformer.tasks.classify.task import ClassifyTask


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with quickly():
        yield


@pytest.fixture
def data(tmp_path):
    return write_reviews(tmp_path / "reviews.csv")


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def prepared(request, display):
    return prepare_run(request, request.resolve(), display)


def asked_for(data, **asked):
    return TrainRequest(
        **{"job": "classify", "data": (str(data),), "steps": 3, "pretrain": False} | asked
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, GlassformerError])
def test_whatever_goes_wrong_meanwhile_nothing_is_left(error, data, tmp_path, monkeypatch):
    def fail(*_):
        assert any(tmp_path.glob("deep/er/.run.new-*/data/samples*"))
        raise error

    monkeypatch.setattr(ClassifyTask, "index", fail)
    with pytest.raises(error):
        prepared(asked_for(data, run=Path("deep/er/run")), Display(quiet=True))
    assert names(tmp_path) == ["reviews.csv"]


def test_a_folder_that_was_there_before_stays(data, tmp_path, monkeypatch):
    (tmp_path / "runs" / "empty").mkdir(parents=True)
    data.write_text("", encoding="utf-8")
    with pytest.raises(GlassformerError, match="the file is empty"):
        prepared(asked_for(data, run=Path("runs/empty")), Display(quiet=True))
    assert names(tmp_path) == ["reviews.csv", "runs", "runs/empty"]


def test_an_empty_folder_may_become_the_run(data, tmp_path):
    (tmp_path / "empty").mkdir()
    prepared(asked_for(data, run=Path("empty")), Display(quiet=True))
    assert (tmp_path / "empty" / "config.toml").exists()


def test_two_that_want_one_name_at_once_do_not_mix(tmp_path):
    def make(*others):
        with under_temporary_name(Path("run")) as folder:
            (folder / f"{len(others)} others").touch()
            for _ in others:
                make()

    with pytest.raises(GlassformerError, match="run: cannot be created"):
        make("another")
    assert names(tmp_path) == ["run", "run/0 others"]


def test_a_leftover_of_a_killed_process_with_our_number_is_no_hindrance(data, tmp_path):
    (tmp_path / f".run.new-{os.getpid()}").mkdir()
    (tmp_path / f".run.new-00000000-{os.getpid()}").mkdir()
    learn(data, tmp_path / "run")
    assert (tmp_path / "run" / "report.json").exists()


def test_a_place_without_permission_is_refused(data, tmp_path, monkeypatch):
    def forbidden(self, *_, **__):  # a superuser may write anywhere, so it is played
        raise PermissionError(13, "Permission denied")

    before = names(tmp_path)
    monkeypatch.setattr(new_folder.Path, "mkdir", forbidden)
    told = "run: cannot be created .Permission denied.; choose another folder with run="
    with pytest.raises(GlassformerError, match=told):
        prepared(asked_for(data, run=Path("run")), Display(quiet=True))
    assert names(tmp_path) == before


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("reviews.csv", "reviews"),
        ("/far/away/My Reviews (new).csv.gz", "My-Reviews-new"),
        ("texts/", "texts"),
        (".hidden", "run"),
        ("电影.csv", "电影"),
    ],
)
def test_a_run_is_named_after_its_data(data, name, tmp_path):
    assert free_name(data) == Path("runs") / name
    (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "runs" / f"{name}-2").touch()
    assert free_name(data) == Path("runs") / f"{name}-3"


def test_columns_that_differ_between_files_are_shown(data, tmp_path, capsys):
    text = data.read_text(encoding="utf-8").replace("text,label", "review,stars", 1)
    (tmp_path / "other.csv").write_text(text.replace("1", "one"), encoding="utf-8")
    prepared(asked_for(data, run=Path("run"), valid=("other.csv",)), Display())
    err = capsys.readouterr().err
    assert "columns: text = 'text', label = 'label'; header: yes\n" in err
    assert "columns of other.csv: text = 'review', label = 'stars'; header: yes\n" in err


def test_no_sample_is_decoded_twice(data, monkeypatch):
    decoded = Counter()

    class Counted(StoredSample):
        def __init__(self, values):
            super().__init__(values)
            decoded[self["where"]] += 1

    monkeypatch.setattr(samples, "StoredSample", Counted)
    run = prepared(asked_for(data, run=Path("run")), Display(quiet=True))
    assert len(decoded) == len(run.task.samples) > 50
    assert set(decoded.values()) == {1}
