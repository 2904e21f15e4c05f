"""A time budget becomes steps: what is left after reading, validating, comparing and a reserve."""

import pytest
from quick import quickly
from small_runs import learn, write_reviews

from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.runs.folder import RunFolder
from glassformer.runs.foresight import timing
from glassformer.runs.foresight.timing import Clock, step_seconds, steps_in, validation_seconds
from glassformer.tasks.job import Job
from glassformer.training.machine import choose_machine
from glassformer.training.plan import Plan


@pytest.fixture(scope="module")
def settled(tmp_path_factory):
    """A job over data, its configuration and the machine."""
    home = tmp_path_factory.mktemp("time")
    with quickly():
        learn(write_reviews(home / "x.csv"), home / "run", "train.validate_every=none")
    folder = RunFolder(home / "run")
    config = folder.config()
    return config, folder.job(config, folder.data), choose_machine(config.machine)


@pytest.fixture
def paced(monkeypatch):
    """A step takes a tenth of a second and a validation one second; no time passes otherwise."""
    monkeypatch.setattr(timing, "step_seconds", lambda job, plan, longest: 0.1)
    monkeypatch.setattr(timing, "validation_seconds", lambda job, plan: 1.0)
    monkeypatch.setattr(timing.time, "monotonic", lambda: 1000.0)


@pytest.mark.parametrize(
    ("seconds", "reserve", "times", "steps"),
    [
        (100.0, 0.0, 1.0, 830),  # 5 are spared, 12 are for validations
        (100.0, 8.0, 1.0, 750),
        (100.0, 0.0, 2.0, 355),  # everything twice
        (12.75, 0.0, 1.0, 1),
    ],
)
def test_the_time_left_is_filled_with_steps(seconds, reserve, times, steps, settled, paced):
    assert steps_in(*settled, Clock(seconds, reserve), times) == steps


def test_validations_that_a_person_asks_for_are_counted(settled, paced, tmp_path):
    from dataclasses import replace

    config, job, machine = settled
    often = replace(config, train=replace(config.train, validate_every=10))
    assert steps_in(often, job, machine, Clock(100.0)) == 465  # (95 - 2) / (0.1 + 1 / 10)


@pytest.mark.parametrize(("seconds", "reserve"), [(12.6, 0.0), (100.0, 90.0), (100.0, 1e6)])
def test_too_little_time_for_one_step_is_refused(seconds, reserve, settled, paced):
    with pytest.raises(GlassformerError, match="is too short: reading, validating and comparing"):
        steps_in(*settled, Clock(seconds, reserve))


def test_steps_and_validations_are_measured(settled):
    config, job, machine = settled
    assert isinstance(config, Config)
    assert isinstance(job, Job)
    plan = Plan(config.train, config.data, machine, config.seed)
    assert 0 < step_seconds(job, plan) < 1
    assert 0 < validation_seconds(job, plan) < 1


def test_measuring_stops_when_it_takes_long(settled, monkeypatch):
    config, job, machine = settled
    done = []
    monkeypatch.setattr(timing, "learn", lambda *_: done.append(1))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: 3.0 * len(done))
    plan = Plan(config.train, config.data, machine, config.seed)
    assert step_seconds(job, plan) == 3.0
    assert len(done) == 2
