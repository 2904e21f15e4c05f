"""Ctrl-C, SIGTERM and a full disk while a run learns: it is saved, and goes on to the same bits."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """Runs that were hit by faults beside one in peace; see faulting.py."""
    folder = tmp_path_factory.mktemp("faults")
    program = [sys.executable, str(Path(__file__).with_name("faulting.py")), str(folder)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


def said(folder, name):
    return (folder / f"{name}.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "code"), [("int", 130), ("term", 143)])
def test_a_run_asked_to_stop_saves_and_says_how_to_go_on(faults, name, code):
    folder, told = faults
    assert told[name] == code
    words = said(folder, name)
    assert "stopping after this step, with a checkpoint; repeat to stop immediately" in words
    assert f"resume with: glassformer resume {folder / name}" in words
    assert words.endswith("glassformer: interrupted\n")
    assert "Traceback" not in words


@pytest.mark.parametrize("name", ["int", "term"])
def test_it_goes_on_from_there_to_the_same_bits(faults, name):
    folder, told = faults
    assert told[f"{name}-again"] == 0
    assert "resuming from step " in said(folder, f"{name}-again")
    weights = [(folder / run / "model.safetensors").read_bytes() for run in ("peace", name)]
    assert weights[0] == weights[1]
    logs = [
        [
            {**json.loads(line), "tokens_per_second": 0, "data_wait": 0}
            for line in (folder / run / "metrics.jsonl").read_text().splitlines()
        ]
        for run in ("peace", name)
    ]
    assert logs[0] == logs[1]


def test_a_disk_that_fills_up_ends_in_one_line_and_loses_nothing(faults):
    folder, told = faults
    assert told["term-full"] == 1
    words = said(folder, "term-full")
    assert "Traceback" not in words
    assert words.splitlines()[-1] == (
        f"glassformer: {folder / 'term'}: no space left on the disk; free some, then resume or "
        f"train again, or choose another folder with --run"
    )
    assert told["left-full"] == told["left"]


def test_the_second_wish_stops_it_at_once(faults):
    folder, told = faults
    assert told["twice"] == 130
    assert "Traceback" not in said(folder, "twice")
