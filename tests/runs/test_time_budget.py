"""A time budget becomes steps: what is left after reading, validating, comparing and a reserve."""

import json
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from quick import quickly
from small_runs import learn, write_reviews

from glassformer.config import DataConfig, MachineConfig, TrainConfig
from glassformer.config.run import Config
from glassformer.runs import timing
from glassformer.runs.folder import RunFolder
from glassformer.runs.timing import (
    Budget,
    Costs,
    Pace,
    calibration_seconds,
    fitting_trainings,
    measured_costs,
    report_seconds,
    step_pace,
    steps_in,
    too_short,
    validation_seconds,
)
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.job import JobTask
from glassformer.training.machine import choose_machine
from glassformer.training.setup import TimedLength, TrainSetup


@pytest.fixture(scope="module")
def settled(tmp_path_factory):
    """A job over data, its configuration and the machine."""
    home = tmp_path_factory.mktemp("time")
    with quickly():
        learn(write_reviews(home / "x.csv"), home / "run", "train.validate_every=none")
    folder = RunFolder(home / "run")
    config = folder.config()
    config = replace(config, train=replace(config.train, validate_every=None))
    return config, folder.open_task(config, folder.data), choose_machine(config.machine)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless a test moves it."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.seconds)
    return now


COSTS = Costs(
    step=0.1, warm_up=0.0, validation=1.0, checkpoint=0.0, calibration=1.0, report=1.0, baseline=4.0
)


@pytest.mark.parametrize(
    ("seconds", "reserve", "times", "steps"),
    [
        (100.0, 1.0, 1.0, 840),  # 5 are spared, 2 for the end, 9 for as many validations
        (100.0, 8.0, 1.0, 780),
        (100.0, 1.0, 2.0, 420),  # everything twice but the end
        (4.3, 1.0, 1.0, 0),
    ],
)
def test_the_time_left_is_filled_with_steps(seconds, reserve, times, steps, settled, clock):
    assert steps_in(settled[0], COSTS, Budget(seconds, reserve), times) == steps


def test_a_budget_counts_from_the_start_of_the_command(clock):
    budget = Budget(100.0, started=990.0)
    assert (budget.spent, budget.left) == (10.0, 85.0)
    clock.seconds += 30
    assert (budget.spent, budget.left) == (40.0, 55.0)
    budget.reserve = 20.0
    assert (budget.left, budget.end) == (35.0, 1065.0)


def test_without_a_limit_everything_fits(clock):
    assert Budget().left_out("no second training", 1e9) == ""
    assert not Budget().limited


def test_what_does_not_fit_is_left_out_with_the_time_it_needs(clock):
    budget = Budget(100.0, started=1000.0)
    assert budget.left_out("no second training", 95.0) == ""
    told = "no second training: 2m00s would be needed, 1m35s are left; allow about 26s more"
    assert budget.left_out("no second training", 120.0) == told


def test_validations_that_a_person_asks_for_are_counted(settled, clock):
    often = replace(settled[0], train=replace(settled[0].train, validate_every=10))
    assert steps_in(often, COSTS, Budget(100.0)) == 470  # (95 - 1) / (0.1 + 1 / 10)


@pytest.mark.parametrize(
    ("seconds", "refit", "curve"), [(150.0, True, True), (90.0, False, True), (50.0, False, False)]
)
def test_second_trainings_are_planned_where_the_first_has_enough_steps(
    seconds, refit, curve, settled, clock
):
    config = replace(settled[0], curve=True, train=replace(settled[0].train, refit=True))
    found, steps, lines = fitting_trainings(config, COSTS, Budget(seconds))
    assert (found.train.refit is True, found.curve) == (refit, curve)
    assert steps >= 300
    assert len(lines) == 2 - refit - curve
    assert all("would be needed" in line for line in lines)


def test_too_little_time_says_how_much_would_do(settled, clock):
    told = str(too_short(settled[0], COSTS, Budget(20.0, started=985.0)))
    assert "20s is too short: 15s are gone, validation and the report take 6s" in told
    assert "time 60s is enough for 300 steps" in told  # 15 + 34 for 300 steps + 5, and some spare


def test_the_costs_of_a_run_are_measured_in_a_small_share_of_the_time_left(
    settled, monkeypatch, clock
):
    config, job, machine = settled
    tried = []
    monkeypatch.setattr(ClassifyReporter, "baseline_seconds", lambda self: 1e6)
    assert 0 < ClassifyReporter(job).cheapest_seconds() < 10
    monkeypatch.setattr(ClassifyReporter, "cheapest_seconds", lambda self: 0.0)

    def pace(job, setup, longest, beside):
        tried.append(longest)
        return Pace(0.1, 0.0, 0.5)

    monkeypatch.setattr(timing, "step_pace", pace)
    monkeypatch.setattr(timing, "_pass_seconds", lambda *_: 2.0)
    costs = measured_costs(config, job, machine, Budget(100.0))
    assert tried == [pytest.approx(1.9)]
    assert (costs.step, costs.pause, costs.calibration, costs.report) == (0.1, 2.5, 2.0, 2.0)
    assert costs.baseline == pytest.approx(timing.BASELINE_SHARE * 95)  # less than all it could do
    monkeypatch.setattr(ClassifyReporter, "cheapest_seconds", lambda self: 40.0)
    assert measured_costs(config, job, machine, Budget(100.0)).baseline == 40  # it always runs
    monkeypatch.setattr(ClassifyReporter, "calibrates", False)
    assert measured_costs(config, job, machine, Budget(100.0)).calibration == 0


# A training that ends by the clock


class Paced:
    """Runs steps of a training by a fake clock."""

    def __init__(self, clock, length, every=10):
        self.clock, self.length, self.every, self.step = clock, length, every, 0

    def run(self, seconds_a_step, until=10**6):
        while self.step < min(until, self.length.steps):
            self.step += 1
            self.clock.seconds += seconds_a_step
            if self.step % self.every == 0 and self.step < self.length.steps:
                self.length.revise(self.step, pauses=0)


def test_a_training_that_is_slower_than_measured_ends_in_time_with_fewer_steps(clock):
    paced = Paced(clock, TimedLength(1000, until=1100.0))
    paced.run(0.1, until=300)
    paced.run(0.4)  # the machine becomes busy
    assert 1090 < clock.seconds < 1103
    assert 450 < paced.step < 490


def test_a_training_that_is_faster_than_measured_fills_its_time(clock):
    paced = Paced(clock, TimedLength(100, until=1100.0))
    paced.run(0.1)
    assert 1094 < clock.seconds <= 1101
    assert paced.length.steps == paced.step > 900


def test_no_steps_are_added_once_the_learning_rate_is_low(clock):
    paced = Paced(clock, TimedLength(1000, until=1100.0))
    paced.run(0.1, until=900)
    paced.run(0.01)
    assert paced.step == 1000


def test_validations_are_not_taken_for_slow_steps(clock):
    length = TimedLength(1000, until=1200.0, pause=10.0)
    for step in range(10, 200, 10):
        clock.seconds += 1.0
        if step == 100:
            clock.seconds += 20.0
            length.add_pause(20.0)
        length.revise(step, pauses=4)
    assert length.pause == 20.0
    left = 1200.0 - clock.seconds - 4 * 20.0
    assert length.steps == pytest.approx(190 + left / 0.1, rel=0.03)


def test_a_training_out_of_time_ends_with_the_next_step(clock):
    length = TimedLength(1000, until=1001.0)
    length.revise(10, pauses=1)
    clock.seconds += 50
    length.revise(20, pauses=1)
    assert length.steps == 21


def test_a_training_that_goes_back_measures_its_pace_anew(clock):
    length = TimedLength(1000, until=1100.0)
    for step in (10, 20, 10, 20, 30):
        clock.seconds += 1.0
        length.revise(step, pauses=0)
    assert length.steps == pytest.approx(980, abs=20)


def test_a_run_writes_down_the_steps_that_the_clock_left_it(tmp_path, monkeypatch, capsys):
    """Its learning rate decays to the end, and a run with as many steps needs no clock."""
    monkeypatch.setattr(timing, "step_pace", lambda *_, **__: Pace(1e-3, 0.0, 0.0))  # too fast
    with quickly():
        run = learn(
            write_reviews(tmp_path / "x.csv"), tmp_path / "run", steps=None, time="3s", quiet=False
        )
    trained = re.search(r"trained for (\S+); kept", capsys.readouterr().err)[1]
    assert run.report["facts"]["training time"] == trained
    steps = RunFolder(tmp_path / "run").config().train.steps
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    last = json.loads([line for line in lines if '"lr"' in line][-1])
    assert last["step"] == steps == int(run.report["facts"]["steps"].split(" ")[0].replace(",", ""))
    assert last["lr"] < 0.2 * max(json.loads(line).get("lr", 0) for line in lines)


def test_steps_and_validations_are_measured(settled):
    config, job, machine = settled
    assert isinstance(config, Config)
    assert isinstance(job, JobTask)
    setup = TrainSetup(config.train, config.data, machine, config.seed)
    assert 0 < step_pace(job, setup).step < 1
    assert 0 < validation_seconds(job, setup) < 1


class Timed:
    """A job that notes the rows it is asked about; a row takes a tenth of a second by each token.

    Its rehearsed twin alone may be asked.
    """

    padded, calibrates, fewest_answers = False, True, 0

    def __init__(self, monkeypatch, parts):
        self.now, self.parts, self.asked = 0.0, parts, {"score": [], "answers": []}
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(timing, "reporter_of", lambda job: job)  # both in one

    def lengths(self, part):
        return np.array(self.parts.get(part, []), dtype=int)

    def batch(self, part, rows, epoch):
        self.taken = self.lengths(part)[rows].tolist()
        return self

    def to(self, device):
        return self

    def for_timing(self):
        asking = {how: self.asking(how) for how in ("score", "answers")}
        return SimpleNamespace(**asking, calibrates=self.calibrates)

    def asking(self, how):
        def ask(model, batches):
            for _ in batches:
                self.asked[how].append(self.taken)
                self.now += 0.1 * sum(self.taken)

        return ask


@pytest.fixture
def rough():
    return TrainSetup(TrainConfig(), DataConfig(batch_tokens=4), choose_machine(MachineConfig()), 0)


@pytest.mark.usefixtures("without_shape_hook")
def test_a_report_is_timed_as_it_asks_and_on_rows_of_all_lengths(monkeypatch, rough):
    job = Timed(monkeypatch, {"test": [1] * 16 + [2] * 8 + [4] * 4, "valid": [1, 1]})
    assert report_seconds(job, rough, torch.nn.Linear(1, 1)) == pytest.approx(4.8)
    assert job.asked == {"score": [], "answers": [[2, 2], [2, 2], [1] * 4, [4]]}
    assert validation_seconds(job, rough, torch.nn.Linear(1, 1)) == pytest.approx(0.2)
    assert job.asked["score"] == [[1, 1]]


@pytest.mark.usefixtures("without_shape_hook")
def test_without_a_test_part_a_report_asks_about_the_other(monkeypatch, rough):
    job = Timed(monkeypatch, {"valid": [3]})
    assert report_seconds(job, rough, torch.nn.Linear(1, 1)) == pytest.approx(0.3)
    assert report_seconds(Timed(monkeypatch, {}), rough) == 0


@pytest.mark.usefixtures("without_shape_hook")
@pytest.mark.parametrize(("calibrates", "seconds"), [(True, 2.1), (False, 0.0)])
def test_only_validations_are_timed_on_a_sample(calibrates, seconds, monkeypatch, rough):
    sampled = replace(rough, train=replace(rough.train, validate_rows=2))
    job, model = Timed(monkeypatch, {"valid": [3] * 7}), torch.nn.Linear(1, 1)
    job.calibrates = calibrates
    assert validation_seconds(job, sampled, model) == pytest.approx(0.6)
    assert calibration_seconds(job, sampled, model) == pytest.approx(seconds)
    assert report_seconds(job, sampled, model) == pytest.approx(2.1)


@pytest.mark.usefixtures("without_shape_hook")
def test_a_pass_is_tried_no_longer_than_a_step_is(monkeypatch, rough):
    job = Timed(monkeypatch, {"test": [4] * 100})
    assert report_seconds(job, rough, torch.nn.Linear(1, 1), longest=0.5) == pytest.approx(40)
    assert len(job.asked["answers"]) == 2


def test_measuring_stops_when_it_takes_long(settled, monkeypatch):
    config, job, machine = settled
    done = []
    monkeypatch.setattr(timing, "train_step", lambda *_: done.append(1))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: 3.0 * len(done))
    setup = TrainSetup(config.train, config.data, machine, config.seed)
    assert step_pace(job, setup).step == 3.0
    assert len(done) == 2
