"""A time budget becomes steps: what is left after reading, validating, comparing and a reserve."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from quick import quickly
from small_runs import learn, write_reviews

from glassformer.config import DataConfig, MachineConfig, TrainConfig
from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.runs import timing
from glassformer.runs.folder import RunFolder
from glassformer.runs.timing import (
    Clock,
    Pace,
    calibration_seconds,
    report_seconds,
    step_pace,
    steps_in,
    validation_seconds,
)
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.job import JobTask
from glassformer.training.machine import choose_machine
from glassformer.training.setup import TrainSetup


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
def paced(monkeypatch):
    """A step takes a tenth of a second and any evaluation one second; no time passes otherwise."""
    monkeypatch.setattr(timing, "step_pace", lambda job, setup, longest: Pace(0.1, 0.0, 0.0))
    monkeypatch.setattr(timing, "_pass_seconds", lambda *_: 1.0)
    monkeypatch.setattr(timing.time, "monotonic", lambda: 1000.0)


@pytest.mark.parametrize(
    ("seconds", "reserve", "times", "steps"),
    [
        (100.0, 0.0, 1.0, 837),  # 5 are spared, 2 for the end, a tenth of the rest for validations
        (100.0, 8.0, 1.0, 765),
        (100.0, 0.0, 2.0, 413),  # everything twice but the report
        (2.3, 0.0, 1.0, 1),
    ],
)
def test_the_time_left_is_filled_with_steps(seconds, reserve, times, steps, settled, paced):
    assert steps_in(*settled, Clock(seconds, reserve), times) == steps


def test_a_clock_may_have_begun_before(monkeypatch):
    monkeypatch.setattr(timing.time, "monotonic", lambda: 1000.0)
    assert Clock(100.0, started=990.0).left == Clock(100.0).left - 10.0


def test_only_jobs_that_calibrate_take_time_for_it(settled, paced, monkeypatch):
    monkeypatch.setattr(ClassifyReporter, "calibrates", False)
    assert steps_in(*settled, Clock(100.0)) == 845


def test_validations_that_a_person_asks_for_are_counted(settled, paced, tmp_path):
    config, job, machine = settled
    often = replace(config, train=replace(config.train, validate_every=10))
    assert steps_in(often, job, machine, Clock(100.0)) == 465  # (95 - 2) / (0.1 + 1 / 10)


@pytest.mark.parametrize(("seconds", "reserve"), [(2.2, 0.0), (100.0, 93.0), (100.0, 1e6)])
def test_too_little_time_for_one_step_is_refused(seconds, reserve, settled, paced):
    with pytest.raises(GlassformerError, match="is too short: reading, validation and the report"):
        steps_in(*settled, Clock(seconds, reserve))


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

    padded, calibrates = False, True

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
    monkeypatch.setattr(timing, "LONGEST_TRY", 0.5)
    job = Timed(monkeypatch, {"test": [4] * 100})
    assert report_seconds(job, rough, torch.nn.Linear(1, 1)) == pytest.approx(40)
    assert len(job.asked["answers"]) == 2


def test_measuring_stops_when_it_takes_long(settled, monkeypatch):
    config, job, machine = settled
    done = []
    monkeypatch.setattr(timing, "train_step", lambda *_: done.append(1))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: 3.0 * len(done))
    setup = TrainSetup(config.train, config.data, machine, config.seed)
    assert step_pace(job, setup).step == 3.0
    assert len(done) == 2
