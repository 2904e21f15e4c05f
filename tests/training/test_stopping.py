"""Stopped inside a validation: nothing is lost, and the validation is made once."""

from dataclasses import replace

import pytest
from jobs import fresh, make, setup_for, train_on

from glassformer.config import DataConfig
from glassformer.training.loop import train
from glassformer.training.setup import Step, Validation
from glassformer.training.weights import weights_of

SMALL = DataConfig(batch_tokens=13, workers=1)  # so that a validation has several batches


@pytest.fixture
def task(tmp_path):
    return make("first", tmp_path / "task", dropout=0.3)


def without_speed(events):
    return [
        replace(e, tokens_per_second=1.0, data_wait=0.0) if isinstance(e, Step) else e
        for e in events
    ]


def counted(task, monkeypatch):
    """The batches that validations have taken so far, in order."""
    taken, score = [], task.score
    monkeypatch.setattr(
        task, "score", lambda model, batches: score(model, (taken.append(b) or b for b in batches))
    )
    return taken


@pytest.mark.parametrize(("asked", "at"), [(1, 3), (2, 6), (3, 7)])
def test_a_stop_inside_a_validation_waits_for_one_batch_and_loses_nothing(
    task, asked, at, tmp_path, monkeypatch
):
    """Asked for at the first, second or third batch of a validation, the last one among them."""
    asks = {"steps": 7, "validate_every": 3, "log_every": 2, "ema": 0.9, "keep": 1, "patience": 7}
    setup = replace(setup_for(task, tmp_path / "stopped", **asks), data=SMALL)
    peace, calm = train_on(task, replace(setup, checkpoints=tmp_path / "peace"))
    taken, state, wishes = counted(task, monkeypatch), fresh(task, setup), []

    def stop():
        wishes.append(state.progress.step)
        return wishes.count(at) >= asked

    first, before = [], 0
    for event in train(state, task, setup, stop):
        first.append(event)
        before = len(taken) if isinstance(event, Validation) else before
    assert (state.progress.step, state.progress.unvalidated) == (at, True)
    assert len(taken) - before == asked - 1
    resumed = fresh(task, setup)
    assert resumed.load(setup.checkpoints)
    assert resumed.progress.unvalidated
    _, rest = train_on(task, setup, resumed)
    assert without_speed(first + rest) == without_speed(calm)
    same = weights_of(resumed.model), weights_of(peace.model)
    assert all(same[0][name].equal(same[1][name]) for name in same[1])
    assert replace(resumed.progress, seconds=0.0) == replace(peace.progress, seconds=0.0)
    names = [{path.name for path in (tmp_path / n).iterdir()} for n in ("stopped", "peace")]
    assert names[0] == names[1]


def test_a_run_stopped_again_and_again_inside_its_validation_comes_to_its_end(task, tmp_path):
    setup = setup_for(task, tmp_path / "stopped", steps=5, validate_every=2, log_every=1)
    peace, calm = train_on(task, replace(setup, checkpoints=tmp_path / "peace"))
    events = []
    for patience in (0, 0, 0, 10**6):
        state = fresh(task, setup)
        state.load(setup.checkpoints)
        left = iter(range(state.progress.step + 2 + patience))
        events += train(state, task, setup, lambda left=left: next(left, None) is None)
    assert without_speed(events) == without_speed(calm)
    assert state.progress.best == peace.progress.best


def test_without_checkpoints_a_validation_stops_as_well(task):
    setup = setup_for(task, steps=4, validate_every=2, log_every=1)
    state = fresh(task, setup)
    events = list(train(state, task, setup, lambda: state.progress.step == 2))
    assert [type(event) for event in events] == [Step, Step]
