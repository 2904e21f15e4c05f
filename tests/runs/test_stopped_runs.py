"""A run that is stopped or killed inside a validation: it goes on to the same end, once."""

import json
import signal
import sys

import pytest
from quick import quickly
from small_runs import learn, same, weights, write_reviews

import glassformer
from glassformer.runs import stopping
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.training.state import State

OFTEN = ("train.validate_every=2", "data.batch_tokens=128", "data.workers=1")
STEPS = 5


@pytest.fixture(scope="module")
def peace(tmp_path_factory):
    home = tmp_path_factory.mktemp("peace")
    write_reviews(home / "reviews.csv")
    with quickly():
        learn(home / "reviews.csv", home / "run", *OFTEN, steps=STEPS)
    return home


def log_of(run):
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{**json.loads(line), "tokens_per_second": 0, "data_wait": 0} for line in lines]


def resumed_like(peace, run):
    with quickly():
        glassformer.resume(run, quiet=True)
    assert same(weights(run), weights(peace / "run"))
    return log_of(run) == log_of(peace / "run")


@pytest.fixture
def _interrupts_end_it():
    """Ctrl-C ends this process; one started in the background would ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts_end_it")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_inside_a_validation_ends_it_at_once(number, peace, tmp_path, monkeypatch):
    score, seen = ClassifyTask.score, []

    def slow(task, model, batches):
        def signalled():
            for batch in batches:
                seen.append(batch)
                if len(seen) == 1:
                    signal.raise_signal(number)
                yield batch

        return score(task, model, signalled())

    with monkeypatch.context() as patch, quickly():
        patch.setattr(ClassifyTask, "score", slow)
        with pytest.raises((SystemExit, KeyboardInterrupt)):
            learn(peace / "reviews.csv", tmp_path / "run", *OFTEN, steps=STEPS)
    assert len(seen) == 1
    assert [line["step"] for line in log_of(tmp_path / "run")] == [2]
    assert resumed_like(peace, tmp_path / "run")


def test_under_nohup_a_run_outlives_its_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping.stopping(print) as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_closed_terminal_hangs_up_more_than_once_and_the_run_still_stops_gracefully(monkeypatch):
    def gone(sentence):
        raise OSError(5, "Input/output error")  # what writing to a closed terminal gives

    nowhere = []
    monkeypatch.setattr(stopping, "send_nowhere", nowhere.append)

    def train_until_stopped():
        with stopping.stopping(gone) as stop:
            for _ in range(2):
                signal.raise_signal(signal.SIGHUP)
            assert stop()

    with pytest.raises(SystemExit) as ended:
        train_until_stopped()
    assert ended.value.code == 128 + signal.SIGHUP
    assert nowhere == [sys.stdout, sys.stderr]  # nothing more is written there


def test_a_validation_that_was_logged_and_not_saved_is_logged_once(peace, tmp_path, monkeypatch):
    def killed(state, folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, quickly():
        patch.setattr(State, "save_progress", killed)
        with pytest.raises(KeyboardInterrupt):
            learn(peace / "reviews.csv", tmp_path / "run", *OFTEN, steps=STEPS)
    assert ["scores" in line for line in log_of(tmp_path / "run")] == [False, True]
    assert resumed_like(peace, tmp_path / "run")
