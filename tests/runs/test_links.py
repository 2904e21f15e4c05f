"""Links in a run folder: nothing is written, or removed, where they lead."""

import shutil
from pathlib import Path

import pytest
from quick import quickly
from small_runs import learn, write_reviews

from glassformer.errors import GlassformerError
from glassformer.files import locked, replacing, write_text
from glassformer.runs import api
from glassformer.runs.lock import is_locked

WRITTEN = ("report.json", "report.html", "labels.json", "metrics.jsonl", "model.safetensors")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("links")
    with quickly():
        learn(write_reviews(folder / "x.csv"), folder / "run")
    return folder / "run"


@pytest.fixture
def run(finished, tmp_path):
    """A run whose report is still to be made."""
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "report.json").unlink()
    return tmp_path / "run"


@pytest.fixture
def letter(tmp_path):
    """What a person does not want to lose."""
    path = tmp_path / "letter.txt"
    path.write_text("Dear")
    return path


def test_a_temporary_name_that_is_a_link_is_not_followed(tmp_path, letter):
    (tmp_path / ".x.json.new").symlink_to(letter)
    write_text("new", tmp_path / "x.json")
    assert letter.read_text() == "Dear"
    assert (tmp_path / "x.json").read_text() == "new"
    assert not (tmp_path / "x.json").is_symlink()
    assert not (tmp_path / ".x.json.new").is_symlink()


def test_a_temporary_name_that_is_a_folder_or_links_to_one_is_free_again(tmp_path, letter):
    (tmp_path / ".x.json.new").mkdir()
    (tmp_path / ".x.json.new" / "old").touch()
    (tmp_path / "y").mkdir()
    shutil.copy(letter, tmp_path / "y")
    (tmp_path / ".y.json.new").symlink_to(tmp_path / "y")
    for name in ("x.json", "y.json"):
        write_text("new", tmp_path / name)
        assert (tmp_path / name).read_text() == "new"
    assert (tmp_path / "y" / letter.name).read_text() == "Dear"


def test_what_goes_wrong_leaves_neither_half_a_file_nor_half_a_folder(tmp_path):
    def fail(make):
        with replacing(tmp_path / "x") as half:
            make(half)
            raise KeyError

    for make in (Path.touch, Path.mkdir):
        with pytest.raises(KeyError):
            fail(make)
    assert list(tmp_path.iterdir()) == []


def test_a_run_with_links_in_it_is_finished_and_what_they_lead_to_is_left_alone(run, letter):
    for name in WRITTEN:
        (run / f".{name}.new").symlink_to(letter)
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").symlink_to(letter)
    (run / "report.html").unlink()
    (run / "report.html").symlink_to(letter)
    with quickly():
        api.resume(run, quiet=True)
    assert letter.read_text() == "Dear"
    assert not [path for path in run.iterdir() if path.is_symlink()]


@pytest.mark.parametrize("name", [".lock", "checkpoints", "pretrain", "board"])
def test_a_run_that_would_be_trained_through_a_link_is_refused(name, run, tmp_path, letter):
    if (run / name).exists():
        shutil.move(run / name, tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").mkdir()
    (run / name).symlink_to(letter if name == ".lock" else tmp_path / "elsewhere")
    with pytest.raises(GlassformerError) as refused:
        api.resume(run, quiet=True)
    assert str(refused.value) == (
        f"{run / name}: is a symbolic link, which training would write through; remove it, or "
        f"replace it with its target"
    )
    assert letter.read_text() == "Dear"
    assert not is_locked(run)


def test_a_lock_is_never_a_link_and_never_emptied(tmp_path, letter):
    (tmp_path / ".lock").symlink_to(letter)
    with pytest.raises(OSError, match="symbolic links"), locked(tmp_path, wait=False):
        pass
    (tmp_path / ".lock").unlink()
    (tmp_path / ".lock").write_text("mine")
    with locked(tmp_path, wait=False):
        pass
    assert (tmp_path / ".lock").read_text() == "mine"
