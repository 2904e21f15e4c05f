"""Resumed = uninterrupted, bit for bit on a CPU, wherever it was interrupted."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from jobs import fresh, make, setup_for, train_on

from glassformer.config import OptimiserConfig, RegulariserConfig, VirtualAdversaryConfig
from glassformer.training.loop import train
from glassformer.training.setup import Step, Validation
from glassformer.training.weights import read_tensors, weights_of

STEPS = 5

WAYS = {
    "adamw": {},
    "muon": {"optimiser": OptimiserConfig(kind="muon")},
    "ema": {"ema": 0.9},
    "accumulate": {"accumulate": 2},
    "average": {"average": 2},
    "frozen": {"freeze": ("encoder",)},
    "r-drop": {"regularise": RegulariserConfig(r_drop=1.0)},
    "vat": {"regularise": RegulariserConfig(vat=VirtualAdversaryConfig(weight=1.0))},
}


def same(first, second):
    return first.keys() == second.keys() and all(first[n].equal(second[n]) for n in first)


def without_speed(events):
    return [
        replace(e, tokens_per_second=1.0, data_wait=0.0) if isinstance(e, Step) else e
        for e in events
    ]


def asked(way):
    return {"steps": STEPS, "save_every": 1, "validate_every": 2, "log_every": 1} | WAYS[way]


def with_snapshots(task, setup, folder, monkeypatch):
    """A run in peace, and what lay on disk whenever something was told or validated."""
    state, events, score = fresh(task, setup), [], task.score

    def snapshot(kind):
        if setup.checkpoints.exists():
            shutil.copytree(setup.checkpoints, folder / kind / str(len(events)))

    def validated(model, batches):
        snapshot("inside a validation")
        return score(model, batches)

    with monkeypatch.context() as patch:
        patch.setattr(task, "score", validated)
        for event in train(state, task, setup):
            snapshot("between")
            events.append(event)
    return state, events


def kept(events, progress):
    """What a log keeps of what was written, when training goes on from here."""
    return [
        event
        for event in events
        if event.step < progress.step
        or (
            event.step == progress.step
            and not (isinstance(event, Validation) and progress.unvalidated)
        )
    ]


@pytest.mark.parametrize(
    ("name", "way"), [("copy", "ema"), ("ctc", "ema"), *(("first", way) for way in WAYS)]
)
def test_going_on_from_any_checkpoint_gives_the_same_bits_and_the_same_log(
    name, way, tmp_path, monkeypatch
):
    """Killed before or after anything is written to the log: nothing is lost, nothing twice."""
    task = make(name, tmp_path / "task", dropout=0.3, token_dropout=0.2)
    setup = setup_for(task, tmp_path / "peace", **asked(way))
    state, events = with_snapshots(task, setup, tmp_path, monkeypatch)
    assert len(events) == STEPS + 3
    froms = {"between": set(), "inside a validation": set()}
    for kind, reached in froms.items():
        for number in range(len(events)):
            folder = tmp_path / kind / str(number)
            if kind != "between" and not folder.exists():
                continue
            again_plan = replace(setup, checkpoints=folder)
            again = fresh(task, again_plan)
            assert again.load(folder) == folder.exists()
            begun = replace(again.progress)
            reached.add(begun.step)
            _, told = train_on(task, again_plan, again)
            assert same(weights_of(again.model), weights_of(state.model))
            assert same(again.optimisers.tensors(), state.optimisers.tensors())
            assert (again.averaged_weights is None) or same(
                again.averaged_weights, state.averaged_weights
            )
            assert replace(again.progress, seconds=0.0) == replace(state.progress, seconds=0.0)
            for written in (events[:number], events[: number + 1]):
                assert without_speed(kept(written, begun) + told) == without_speed(events)
            assert names_in(folder) == names_in(setup.checkpoints)
    assert froms == {"between": set(range(STEPS + 1)), "inside a validation": {2, 4, 5}}


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_training_may_be_left_and_taken_up_again_many_times(tmp_path):
    """A new state for every two steps, as after so many kills."""
    task = make("first", tmp_path / "task", dropout=0.3)
    setup = setup_for(task, tmp_path / "often", steps=9, save_every=2, log_every=1)
    peace, _ = train_on(task, replace(setup, checkpoints=tmp_path / "peace"))
    state = fresh(task, setup)
    for _ in range(20):
        state = fresh(task, setup)
        state.load(setup.checkpoints)
        taken = train(state, task, setup)
        list(islice(taken, 5))
        taken.close()
    assert state.progress.step == 9
    assert same(weights_of(state.model), weights_of(peace.model))


def test_a_run_that_stopped_early_stays_stopped(tmp_path, monkeypatch):
    task = make("first", tmp_path / "task")
    monkeypatch.setattr(task, "score", lambda model, batches: {"accuracy": 0.5})
    setup = setup_for(task, tmp_path / "runs", steps=30, validate_every=1, patience=2)
    state, _ = train_on(task, setup)
    assert state.progress.step == 3
    again = fresh(task, setup)
    assert again.load(setup.checkpoints)
    assert train_on(task, setup, again)[1] == []


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run in peace beside one that was killed many times; see killing.py."""
    folder = tmp_path_factory.mktemp("killed")
    program = [sys.executable, str(Path(__file__).with_name("killing.py")), str(folder)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


def test_a_killed_run_comes_to_the_same_weights_bit_for_bit(killed):
    folder, told = killed
    assert len(told["kills"]) >= 6  # the others came too late
    assert told["kills"][:2] == [0, 0]  # while reading data, and before the first checkpoint
    assert len(set(told["kills"])) > 3
    paths = [folder / name / "model.safetensors" for name in ("peace", "killed")]
    assert same(*map(read_tensors, paths))
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_killed_run_says_the_same_in_its_log_and_its_report(killed):
    folder, _ = killed
    logs, scores = [], []
    for name in ("peace", "killed"):
        lines = (folder / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        logs.append(
            [{**json.loads(line), "tokens_per_second": 0, "data_wait": 0} for line in lines]
        )
        scores.append(json.loads((folder / name / "report.json").read_text())["scores"])
    assert logs[0] == logs[1]
    assert scores[0] == scores[1]


def test_kills_leave_no_heap_of_half_written_checkpoints(killed):
    folder, told = killed
    assert told["mess"] <= 5  # the newest, two best, one to be removed, one half written
    assert names_in(folder / "killed" / "checkpoints") == names_in(folder / "peace" / "checkpoints")
    foretold = {"prediction.json"}  # by steps that follow each other; kills left too few
    assert set(names_in(folder / "killed")) | foretold == set(names_in(folder / "peace"))
