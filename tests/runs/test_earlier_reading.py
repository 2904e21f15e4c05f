"""What was read for a run that could not be trained is read once: the next try takes it over."""

import os
import re
from pathlib import Path

import pytest
from quick import quickly
from small_recordings import WORDS, record, write_table
from small_runs import learn, same, weights, write_reviews

from glassformer.cli import main
from glassformer.runs import fit, prepare
from glassformer.runs.api import resume
from glassformer.runs.earlier_reading import is_spare
from glassformer.runs.listing import list_runs_in, prunable
from glassformer.runs.timing import Costs, TooLittleTimeError

SLOW = Costs(
    step=9.0,
    warm_up=0.0,
    validation=9.0,
    checkpoint=0.0,
    calibration=0.0,
    report=9.0,
    baseline=9.0,
)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with quickly():
        yield


@pytest.fixture
def data(tmp_path):
    return write_reviews(tmp_path / "reviews.csv")


@pytest.fixture
def slow(monkeypatch):
    """Steps take nine seconds, as far as they are measured."""
    monkeypatch.setattr(fit, "measured_costs", lambda *_: SLOW)


def too_short(data, run=None, **asked):
    with pytest.raises(TooLittleTimeError) as error:
        learn(data, run, steps=None, time="10s", **asked)
    return str(error.value)


def never(*_):
    raise AssertionError("it was read again")


@pytest.mark.parametrize("run", [None, Path("here")])
def test_too_short_a_try_keeps_what_it_has_read_and_the_next_one_uses_it(
    run, data, slow, monkeypatch, capsys
):
    kept = run or Path("runs/reviews")
    told = too_short(data, run)
    assert re.search(r"is too short: \d+s are gone", told)
    assert "is enough for 300 steps" in told
    assert told.endswith(f"what was read is kept in {kept} for the next try")
    assert is_spare(kept)
    assert [path for path, _ in prunable(kept.parent)] == [kept]
    [listed] = list_runs_in(kept.parent)
    assert listed.state == "too little time; what was read is kept"
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "read_samples", never)
        learn(data, run, quiet=False)
    assert f"as {kept} has read them: no file has changed since" in capsys.readouterr().err
    assert not is_spare(kept)
    if run is None:
        learn(data, Path("fresh"))
        assert same(weights(kept), weights(Path("fresh")))
        assert (kept / "intake.json").read_text() == Path("fresh/intake.json").read_text()
    assert not list(kept.parent.glob(".*.new*"))


def test_a_resumed_run_goes_on_with_what_it_has_read(data, slow, monkeypatch):
    too_short(data)
    with pytest.raises(TooLittleTimeError):
        resume("runs/reviews", quiet=True)
    monkeypatch.undo()
    with quickly():
        os.chdir(data.parent)
        resume("runs/reviews", quiet=True)
    assert not is_spare(Path("runs/reviews"))


@pytest.mark.parametrize("change", ["file", "settings"])
def test_after_a_change_everything_is_read_again_and_the_spare_folder_replaced(
    change, data, slow, monkeypatch
):
    too_short(data)
    if change == "file":
        write_reviews(data, 151)
    read, samples = [], prepare.read_samples
    monkeypatch.setattr(prepare, "read_samples", lambda *a: (read.append(1), samples(*a))[1])
    learn(data, None, *(["data.test_share=0.2"] if change == "settings" else []))
    assert read == [1]
    assert [path.name for path in Path("runs").iterdir()] == ["reviews"]


def test_a_killed_run_lends_what_it_has_read_and_stays(data, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(
            fit, "train_with_recovery", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            learn(data, Path("killed"))
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "read_samples", never)
        learn(data, Path("next"), steps=2)
    resume("killed", quiet=True)
    learn(data, Path("whole"))
    assert same(weights(Path("killed")), weights(Path("whole")))


def test_a_finished_run_lends_nothing_and_another_try_does_not_touch_it(data, monkeypatch):
    learn(data, Path("first"))
    monkeypatch.setattr(prepare, "read_samples", never)
    with pytest.raises(AssertionError, match="read again"):
        learn(data, Path("second"))


def test_rows_given_in_python_are_read_again(slow):
    rows = [{"text": f"a {word} film {n}", "label": word} for n in range(50) for word in ("x", "y")]
    with pytest.raises(TooLittleTimeError) as error:
        learn(rows, Path("run"), steps=None, time="10s")
    assert "kept" not in str(error.value)
    assert not Path("run").exists()


def test_a_recording_that_changed_is_heard_again(tmp_path, slow, monkeypatch):
    table = write_table(tmp_path / "table.csv", record(tmp_path / "sounds", 8 * WORDS))
    words = ["train", "transcribe", str(table), "--quiet", "--json", "--run", "run"]
    assert main([*words, "--time", "10s"]) == 1
    sound = next(tmp_path.rglob("*.wav"))
    os.utime(sound, (1, 1))
    monkeypatch.setattr(prepare, "read_samples", never)
    with pytest.raises(AssertionError, match="read again"):
        main([*words, "--time", "10s"])
