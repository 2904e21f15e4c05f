"""Paths that the system refuses: one line that names them, and nothing is written."""

import errno
import os
from pathlib import Path

import pytest

from glassformer.runs.listing import list_runs_in


@pytest.mark.parametrize(
    "command",
    [
        ("doctor", "closed/a.csv"),
        ("train", "classify", "closed/a.csv", "--run", "new"),
        ("train", "classify", "a.csv", "--from", "closed/run", "--run", "new"),
        ("predict", "closed/run", "x"),
        ("evaluate", "closed/run", "a.csv"),
        ("serve", "closed/run"),
        ("runs", "list", "closed/run"),
    ],
)
def test_a_path_that_the_system_refuses_is_named_in_one_line(
    command, tmp_path, monkeypatch, refused
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.csv").write_text("text,label\na,b\n")
    close(monkeypatch, tmp_path / "closed")
    assert refused(*command) == (
        "closed: cannot be used (Permission denied); check the path and its permissions"
    )


def close(monkeypatch, folder):
    """Nobody may enter the folder, not even root."""
    stat, access = os.stat, os.access

    def inside(path):
        return not isinstance(path, int) and folder in Path(path).absolute().parents

    def stat_unless_closed(path, **options):
        if inside(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **options)

    def access_unless_closed(path, mode, **options):
        denied = inside(path) or (Path(path).absolute() == folder and mode & os.X_OK)
        return not denied and access(path, mode, **options)

    monkeypatch.setattr(os, "stat", stat_unless_closed)
    monkeypatch.setattr(os, "access", access_unless_closed)


@pytest.mark.parametrize("command", ["predict", "evaluate", "resume", "serve"])
def test_a_folder_that_is_no_run_is_not_walked(command, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("text,label\na,b\n")
    (tmp_path / "home").mkdir()
    os.mkfifo(tmp_path / "home" / "pipe")
    given = ("a.csv",) if command in ("predict", "evaluate") else ()
    assert refused(command, "home", *given).startswith(
        "home: not a run folder, it has no config.toml; name one created by"
    )


def test_a_folder_that_may_not_be_entered_hides_no_run(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").touch()
    close(monkeypatch, tmp_path / "closed")
    assert [run.path for run in list_runs_in(tmp_path)] == [tmp_path / "run"]
