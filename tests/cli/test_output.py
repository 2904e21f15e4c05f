"""Standard output and input that end early: a full disk, a reader who leaves, a closed stream."""

import io
import os
import sys
import time

import pytest
from small_files import trained

from glassformer.cli import main
from glassformer.runs import api, arguments, plan as planning

FULL = "/dev/full"


@pytest.fixture
def commands(tmp_path_factory):
    """Commands that print, each in its own way."""
    home = trained(tmp_path_factory)
    run, data = str(home / "run"), str(home / "test.csv")
    return [
        ["predict", run, "a great film"],
        ["predict", run, "a great film", "--json"],
        ["evaluate", run, data],
        ["evaluate", run, data, "--json"],
        ["runs", "list", str(home)],
    ]


@pytest.mark.skipif(not os.path.exists(FULL), reason="needs a device that is always full")
def test_a_full_disk_is_told_in_one_line(commands, capsys, monkeypatch):
    for words in commands:
        with open(FULL, "w", encoding="utf-8") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            assert main(words) == 1
        err = capsys.readouterr().err
        assert err.startswith("glassformer: cannot write to standard output (No space left")
        assert err.count("\n") == 1


def test_a_reader_who_leaves_ends_every_command_in_peace(commands, capsys, monkeypatch):
    for words in commands:
        reads, writes = os.pipe()
        os.close(reads)
        with os.fdopen(writes, "w", encoding="utf-8") as pipe, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", pipe)
            assert main(words) == 0
        assert capsys.readouterr().err == ""


def test_an_exit_code_stays_when_the_reader_leaves(capsys, monkeypatch):
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        pipe.write("not sent yet")
        assert main(["predict"]) == 2


def test_closed_streams_are_told(commands, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", None)
        assert main(commands[0][:2]) == 1
    assert capsys.readouterr() == (
        "",
        "glassformer: standard input is closed; give an input or @FILE, or pipe inputs in\n",
    )
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert main(commands[0]) == 1
    told = "glassformer: standard output is closed; redirect it to a file or to /dev/null\n"
    assert capsys.readouterr().err == told


def test_without_standard_error_answers_come_alone(commands, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        assert main(["predict", "no run", "a text"]) == 1
    assert capsys.readouterr().out == ""


def test_other_things_about_the_stream_stay_as_they_are(monkeypatch):
    paper = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", paper)
    assert main(["mask", "causal", "--size", "2"]) == 0
    assert sys.stdout is paper
    assert paper.buffer.getvalue() == b"#.\n##\n"


def test_time_counts_from_when_the_command_began(monkeypatch):
    def stop(asked_for, display, *, started):
        raise TimeoutError(started)

    monkeypatch.setattr(api, "run_training", stop)
    monkeypatch.setattr(planning, "estimate_training", stop)
    monkeypatch.setattr(arguments, "train_request", lambda **given: time.sleep(0.05))
    for verb in ("train", "plan"):
        before = time.monotonic()
        with pytest.raises(TimeoutError) as caught:
            main([verb, "classify", "x.csv"])
        assert before <= caught.value.args[0] < time.monotonic() - 0.05
