"""A plan tells what a training takes before it begins, and a training tells how true that was."""

import importlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from quick import quickly
from small_runs import SETTINGS, learn, same, write_reviews

from glassformer.config import DataConfig, TrainConfig
from glassformer.errors import GlassformerError
from glassformer.runs import forecast, plan as planning, timing
from glassformer.runs.display import Display
from glassformer.runs.estimate import Disk, Memory, advice
from glassformer.runs.folder import RunFolder
from glassformer.runs.forecast import Forecaster, prediction_fact
from glassformer.runs.model_size import predicted_bytes
from glassformer.runs.request import TrainRequest
from glassformer.runs.timing import Pace, checkpoints, validations
from glassformer.runs.warm_start import fresh_model
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.training import memory
from glassformer.training.cost import state_bytes
from glassformer.training.loop import train
from glassformer.training.machine import Machine
from glassformer.training.setup import Step, TrainSetup, Validation
from glassformer.training.state import State
from glassformer.training.weights import weights_of

MEASURED = ClassifyReporter.timed_baseline_seconds  # before it is replaced


@pytest.fixture(autouse=True)
def _quickly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ClassifyReporter, "timed_baseline_seconds", lambda self: 7.0)
    with quickly():
        yield


@pytest.fixture
def data(tmp_path):
    return write_reviews(tmp_path / "reviews.csv")


def planned(data, *settings, **asked):
    usual = {"steps": 50, "pretrain": False, "quiet": True, "set": (*SETTINGS, *settings)}
    return planning.plan("classify", data, **usual | asked)


def test_a_plan_tells_of_the_model_the_work_the_memory_and_the_time(data, tmp_path):
    found = planned(data, "data.batch_tokens=256")
    run = learn(data, tmp_path / "run", "data.batch_tokens=256")
    assert found.parameters == sum(weight.numel() for weight in run.model.parameters())
    assert found.parts.keys() == {"frontend", "encoder", "to_class"}
    tokens = int(
        RunFolder(tmp_path / "run")
        .open_task(run.config, tmp_path / "run" / "data")
        .lengths("train")
        .sum()
    )
    work = found.work
    assert work.tokens_an_epoch == tokens
    assert work.steps == 50
    assert work.epochs * tokens == pytest.approx(50 * work.tokens_a_step)
    assert work.flops_in_all == 50 * work.flops > 50 * 6 * tokens * 12 * 16 * 16 / 10
    parts = ("starting", "reading", "learning", "validating", "saving", "reporting")
    assert tuple(found.seconds) == parts
    assert found.time == sum(found.seconds.values()) > 7
    assert work.speed == pytest.approx(work.flops / (found.seconds["learning"] / 50), rel=1e-2)
    assert found.memory.weights == 4 * found.parameters
    assert found.disk.total > 4 * found.memory.weights
    assert found.fits
    json.dumps(found.as_values())


def test_a_command_also_takes_time_to_start_and_to_end(data):
    request = TrainRequest(job="classify", data=(str(data),), steps=50, settings=SETTINGS)
    started = time.monotonic() - 10.0
    found = planning.estimate_training(request, Display(quiet=True), started=started)
    assert found.seconds["starting"] == pytest.approx(15.0, rel=0.1)
    assert planned(data).seconds["starting"] == 0.0  # in Python, where all is imported


def test_a_plan_leaves_nothing_behind(data, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    planned(data)
    assert [path.name for path in tmp_path.iterdir()] == ["reviews.csv"]


def test_batches_that_accumulate_are_one_step(data):
    one, four = (planned(data, "data.batch_tokens=256", f"train.accumulate={n}") for n in (1, 4))
    assert four.work.tokens_a_step == pytest.approx(4 * one.work.tokens_a_step)
    assert four.work.epochs == pytest.approx(4 * one.work.epochs)
    assert four.work.flops == pytest.approx(4 * one.work.flops)


def test_a_time_becomes_steps_that_fit_into_it(data, monkeypatch):
    monkeypatch.setattr(
        timing, "step_pace", lambda job, setup, longest, beside: Pace(1.0, 0.0, 0.0)
    )
    monkeypatch.setattr(ClassifyReporter, "baseline_seconds", lambda self: 10.0)
    assert 80 <= planned(data, steps=None, time="100s").work.steps <= 85


def test_a_learning_curve_takes_its_share(data, monkeypatch):
    monkeypatch.setattr(planning, "tried_steps", lambda *_: iter([9.0, 1.0, 1.0]))
    one, curve = (planned(data, curve=wanted).seconds["learning"] for wanted in (False, True))
    assert (one, curve) == pytest.approx((50.0, 50.0 * 1.875), rel=1e-2)


def test_frozen_parts_are_told_apart(data):
    found = planned(data, 'train.freeze=["encoder"]')
    assert found.parts["encoder"].trainable == 0 < found.parts["encoder"].frozen
    assert found.memory.gradients < found.memory.weights


# What does not fit


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("model.encoder.dim=2000000", r"this model does not fit: .* take .* [TPE]B, but cpu has"),
        ("model.encoder.depth=1000000", r"depth must be at most 10,000, got 1000000"),
    ],
)
def test_an_absurd_model_is_refused_before_it_is_built(setting, told, data, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(GlassformerError, match=told):
        learn(data, tmp_path / "run", setting)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_plan_of_a_model_too_large_to_be_built_tells_what_it_would_need(data, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    found = planned(data, "model.encoder.dim=2000000")
    assert not found.fits
    assert found.parameters * 16 == pytest.approx(found.memory.total)  # with two moments
    assert (found.work, found.disk, found.time) == (None, None, None)
    assert found.notes[0].startswith("this model does not fit: its weights, gradients and")
    assert found.as_values()["fits"] is False
    assert sorted(tmp_path.rglob("*")) == before


def test_a_plan_looks_at_one_process(data, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(GlassformerError, match="plan runs in one process; drop torchrun"):
        planned(data)


def test_a_step_that_would_not_fit_is_not_tried(data, monkeypatch):
    def never(*_):
        raise AssertionError("a step was taken")

    monkeypatch.setattr(planning, "tried_steps", never)
    monkeypatch.setattr(memory, "in_use", lambda device: 0)
    state = planned_state(data)
    monkeypatch.setattr(memory, "capacity", lambda device: state + 100_000)
    found = planned(data)
    assert not found.fits
    assert found.time is None
    assert not found.memory.measured
    assert found.memory.total > state + 100_000
    assert "Out of memory" in found.notes[0]
    assert 'set=["data.batch_tokens=' in found.notes[0]


def planned_state(data):
    """What training holds without activations."""
    run = learn(data, Path("run"))
    return state_bytes(run.model, run.config.train).total


def some_memory(activations, room):
    return Memory(
        **{"before": 100, "weights": 100, "gradients": 100, "optimiser": 200, "averages": 0},
        activations=activations,
        measured=False,
        room=room,
    )


def test_advice_is_to_cut_batches_where_that_helps_and_a_smaller_model_where_not():
    enough = Disk(total=5, room=5)
    [cut] = advice(some_memory(1000, 800), enough, batch_tokens=4096, accumulate=2)
    assert cut.endswith("--set data.batch_tokens=1024 --set train.accumulate=8")
    [smaller] = advice(some_memory(1000, 400), enough, 4096, 2)
    assert smaller.endswith("use a smaller --size.")
    assert advice(some_memory(1000, 1500), enough, 4096, 2) == []
    assert advice(some_memory(1000, None), enough, 4096, 2) == []
    [full] = advice(some_memory(1000, 1500), Disk(total=6, room=5), 4096, 2)
    assert full.startswith("Not enough disk space: needs 6 bytes, 5 bytes are free")


def test_layers_that_are_not_built_are_counted_like_those_that_are(data):
    windows = "model.encoder.depth=2", "model.encoder.attention.window=[3, 0]"
    run = learn(data, Path("run"), *windows)
    deep = replace(run.config.model, encoder=replace(run.config.model.encoder, depth=5))
    config = replace(run.config, model=deep)
    built = run.folder.open_task(config, None).model()
    foreseen = predicted_bytes(config, lambda shallow: run.folder.open_task(shallow, None))
    assert foreseen == state_bytes(built, config.train)


# What is left out is said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"set": (*SETTINGS, "pretrain=yes")}, "pretraining, about 3 times the work"),
        ({}, "a trial of whether pretraining helps (about 20s), and pretraining if it does"),
        ({"pretrain": False}, None),
        ({"set": (*SETTINGS, "model.frontend.kind=ngrams")}, None),
    ],
)
def test_pretraining_is_left_out_and_said(asked, said, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "tried_steps", lambda *_: iter([1.0]))
    monkeypatch.setattr(planning, "validation_seconds", lambda *_: 0.0)
    monkeypatch.setattr(planning, "calibration_seconds", lambda *_: 0.0)
    monkeypatch.setattr(planning, "report_seconds", lambda *_: 0.0)
    monkeypatch.setattr(planning, "checkpoint_seconds", lambda *_: 0.0)
    data = write_reviews(tmp_path / "many.csv", count=601)
    found = planned(data, **{"pretrain": True, "set": SETTINGS} | asked)
    notes = [note for note in found.notes if "pretraining" in note]
    assert [said in note for note in notes] == ([True] if said else [])


def test_the_baseline_is_timed_on_a_share_of_the_rows(data, monkeypatch):
    run = learn(data, Path("run"))
    seen = []

    def fitted(self, rows):
        seen.append(len(rows["train"]))
        return SimpleNamespace(seconds=2.0)

    monkeypatch.setattr(ClassifyReporter, "fit_ngrams", fitted)
    job = run.folder.open_task(run.config, run.folder.data)
    importlib.import_module("sklearn.linear_model")  # would be counted once
    rows = len(job.lengths("train"))
    some = -(-rows // 4)
    for guess, seconds in [(12.0, rows / some * 2.0), (0.1, 2.0)]:
        monkeypatch.setattr(ClassifyReporter, "baseline_seconds", lambda self, x=guess: x)
        assert MEASURED(ClassifyReporter(job)) == pytest.approx(seconds, abs=0.1)
    assert seen == [some, rows]


# Time between steps


@pytest.mark.parametrize("steps", [1, 7, 100, 101])
@pytest.mark.parametrize("validate_every", [None, 3, 500])
@pytest.mark.parametrize("save_every", [None, 2, 5])
def test_validations_and_checkpoints_are_counted_as_the_loop_makes_them(
    steps, validate_every, save_every
):
    config = TrainConfig(steps=steps, validate_every=validate_every, save_every=save_every)
    setup = TrainSetup(config, DataConfig(), Machine(*cpu()), 0)
    for until in {1, steps // 2, steps}:
        taken = range(1, until + 1)
        assert validations(setup, until) == sum(map(setup.validates, taken))
        assert checkpoints(setup, until) == sum(map(setup.saves, taken))
    pace = Pace(1.0, 10.0, 100.0)
    assert pace.validating(setup, 0, steps) == 10 * sum(map(setup.validates, range(1, steps + 1)))


def cpu():
    return torch.device("cpu"), torch.float32, False


# Predicted against actual


class Paced:
    """Events of a training whose steps take two seconds each, by its own clock."""

    def __init__(self, monkeypatch, job, setup, state):
        self.now, self.setup, self.state = 0.0, setup, state
        monkeypatch.setattr(forecast.time, "perf_counter", lambda: self.now)
        self.forecaster = Forecaster(state, job, setup)

    def events(self, until):
        for step in range(1, until + 1):
            slow = 40.0 if step == 1 else 0.0
            self.now += 2.0 + slow
            self.state.progress.step = step
            self.state.progress.seconds += 2.0 + slow
            if self.setup.reports(step):
                yield Step(step, 1.0, 1e-3, 1.0, 100.0)
            if self.setup.validates(step):
                self.now += 12.0
                yield Validation(step, {"accuracy": 0.5}, True)


@pytest.fixture
def paced(tmp_path, monkeypatch):
    learn(write_reviews(tmp_path / "x.csv"), tmp_path / "run", "train.validate_every=none")
    folder = RunFolder(tmp_path / "run")
    config = folder.config()
    job = folder.open_task(config, folder.data)
    train = replace(config.train, steps=100, log_every=5)
    setup = TrainSetup(train, config.data, Machine(*cpu()), 0)
    return Paced(monkeypatch, job, setup, State(job.model(), train))


def test_the_first_steps_predict_the_rest(paced):
    list(paced.forecaster.follow(paced.events(100)))
    found = paced.forecaster.compare()
    assert (found.after, found.steps) == (20, 100)
    # Spent so far: 20 steps, a slow start, two validations; then steps and validations predicted.
    assert found.seconds == pytest.approx(40 + 40 + 24 + 80 * 2 + 8 * 12)
    assert found.took_seconds == 200 + 40 + 10 * 12


def test_a_training_that_stops_early_is_held_against_the_steps_it_took(paced):
    list(paced.forecaster.follow(paced.events(50)))
    assert paced.forecaster.compare().steps == 50
    assert paced.forecaster.compare().seconds < 0.8 * (200 + 40 + 10 * 12)


def test_a_training_too_short_to_predict_says_nothing(paced, tmp_path):
    list(paced.forecaster.follow(paced.events(15)))
    paced.forecaster.report(RunFolder(tmp_path / "run"), Display(quiet=True))
    assert paced.forecaster.compare() is None
    assert prediction_fact(RunFolder(tmp_path / "run")) == {}


def test_the_comparison_is_said_and_stands_in_the_report(paced, tmp_path, capsys):
    list(paced.forecaster.follow(paced.events(100)))
    folder = RunFolder(tmp_path / "run")
    paced.forecaster.report(folder, Display())
    said = capsys.readouterr().err
    assert re.match(r"planned \dm\d\ds( and [\d.]+ [MG]B)?; took 6m00s( and [\d.]+ [MG]B)?\n", said)
    assert prediction_fact(folder) == {"predicted": f"after 20 of 100 steps: {said.strip()}"}


def test_a_training_that_is_watched_learns_the_same(tmp_path):
    learn(write_reviews(tmp_path / "x.csv"), tmp_path / "run", "model.encoder.dropout=0.3")
    folder = RunFolder(tmp_path / "run")
    config = folder.config()
    job = folder.open_task(config, folder.data)
    setup = TrainSetup(replace(config.train, steps=30), config.data, Machine(*cpu()), 0)
    learned = []
    for is_watched in (False, True):
        state = State(fresh_model(job, 0), setup.train)
        forecaster, events = Forecaster(state, job, setup), train(state, job, setup)
        list(forecaster.follow(events) if is_watched else events)
        learned.append(weights_of(state.model))
        assert (forecaster.compare() is not None) == is_watched
    assert same(*learned)
