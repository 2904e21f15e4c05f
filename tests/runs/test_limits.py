"""A full disk and a full memory are told in one line, and what was learned stays."""

import errno
import json
import shutil

import pytest
import torch
from quick import quickly
from safetensors import SafetensorError
from small_runs import learn, same, weights, write_reviews

from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.runs import api, fit as fitting
from glassformer.runs.display import Display
from glassformer.runs.lock import run_lock
from glassformer.training.state import State


@pytest.fixture(autouse=True)
def _quickly():
    with quickly():
        yield


@pytest.fixture
def data(tmp_path):
    return write_reviews(tmp_path / "x.csv")


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


FULL = [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    OSError("6000 requested and 3968 written"),  # of numpy
    SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    SafetensorError("Error while serializing: I/O error: File too large (os error 27)"),
]
NO_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory"),
    MemoryError(),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    RuntimeError("could not create a primitive"),
    RuntimeError("can't start new thread"),
]


@pytest.mark.parametrize("error", FULL, ids=str)
def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_space(
    error, data, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "keep_weights", raising(error))
        with pytest.raises(GlassformerError, match="no space left on the disk; free some, then"):
            learn(data, tmp_path / "run")
    api.resume(tmp_path / "run", quiet=True)
    learn(data, tmp_path / "peace")
    assert same(weights(tmp_path / "peace"), weights(tmp_path / "run"))


def test_a_disk_that_is_full_from_the_start_keeps_nothing(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Samples, "write", raising(FULL[0]))
    with pytest.raises(GlassformerError, match="or choose another folder with run="):
        learn(data, tmp_path / "run")
    assert list(tmp_path.iterdir()) == [data]


def test_a_full_disk_during_evaluation_is_told_with_what_to_do(data, tmp_path, monkeypatch):
    run = learn(data, tmp_path / "run")
    monkeypatch.setattr(Samples, "write", raising(FULL[0]))
    with pytest.raises(GlassformerError, match="no space left for temporary files; free"):
        run.evaluate(data)
    monkeypatch.setattr(Samples, "write", raising(FileNotFoundError(errno.ENOENT, "gone")))
    with pytest.raises(FileNotFoundError):
        run.evaluate(data)


@pytest.mark.parametrize("error", NO_MEMORY, ids=repr)
def test_a_full_memory_is_told_with_what_to_do(error, data, tmp_path, monkeypatch):
    monkeypatch.setattr(State, "__init__", raising(error))
    with pytest.raises(GlassformerError, match="does not fit in device memory; use a smal"):
        learn(data, tmp_path / "run")
    assert list(tmp_path.iterdir()) == [data]


def test_other_faults_are_not_hidden(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Samples, "write", raising(FileNotFoundError(errno.ENOENT, "gone")))
    with pytest.raises(FileNotFoundError):
        learn(data, tmp_path / "run")


def test_a_run_is_trained_by_one_process_at_a_time(data, tmp_path):
    learn(data, tmp_path / "run")
    (tmp_path / "run" / "report.json").unlink()
    with (
        run_lock(tmp_path / "run"),
        pytest.raises(GlassformerError, match="by another process; wait"),
    ):
        api.resume(tmp_path / "run", quiet=True)
    api.resume(tmp_path / "run", quiet=True)


def test_a_finished_run_that_lost_its_model_makes_it_again(data, tmp_path):
    learn(data, tmp_path / "run")
    before = weights(tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").unlink()
    api.resume(tmp_path / "run", quiet=True)
    assert same(before, weights(tmp_path / "run"))


NO_EVENTS = [b"\xff\xfe\x00", b"3\n", b'{"a": 1}\n', b'{"step": 1, "lo', b'{"step": "x"}\n']


@pytest.mark.parametrize("content", NO_EVENTS, ids=range(len(NO_EVENTS)))
def test_a_log_that_is_damaged_does_not_keep_a_run_from_going_on(content, data, tmp_path):
    learn(data, tmp_path / "run")
    (tmp_path / "run" / "report.json").unlink()
    with (tmp_path / "run" / "metrics.jsonl").open("ab") as file:
        file.write(content)
    api.resume(tmp_path / "run", quiet=True)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert all("step" in json.loads(line) for line in lines)


def test_a_run_that_may_not_be_written_is_refused_in_one_line(data, tmp_path, monkeypatch):
    learn(data, tmp_path / "run")
    (tmp_path / "run" / ".lock").unlink()
    (tmp_path / "run" / ".lock").mkdir()  # nobody can write to it, not even root
    (tmp_path / "run" / "report.json").unlink()
    with pytest.raises(
        GlassformerError, match=r"run: cannot be written to \(Is a directory\); copy"
    ):
        api.resume(tmp_path / "run", quiet=True)


def test_a_best_checkpoint_damaged_on_the_way_is_named_and_not_kept(data, tmp_path, monkeypatch):
    keep, said = fitting.train_with_recovery, []

    def damaging(*words):
        yield from keep(*words)
        state = words[0]
        _, best = state.progress.best[0]
        path = tmp_path / "run" / "checkpoints" / f"step-{best}" / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-1] + b"x")

    monkeypatch.setattr(fitting, "train_with_recovery", damaging)
    monkeypatch.setattr(Display, "say", lambda self, sentence: said.append(sentence))
    learn(data, tmp_path / "run", "train.keep=2", "train.validate_every=1", steps=3)
    assert [line for line in said if "is damaged; using the next best checkpoint" in line]
    assert all(tensor.isfinite().all() for tensor in weights(tmp_path / "run").values())


@pytest.mark.parametrize("step", [0, 2])
def test_a_run_folder_that_is_removed_while_it_trains_ends_in_one_line(
    step, data, tmp_path, monkeypatch
):
    keep, run = fitting.train_with_recovery, tmp_path / "run"

    def removing(*words):
        for number, event in enumerate(keep(*words)):
            if number == step:
                shutil.rmtree(run)
            yield event

    monkeypatch.setattr(fitting, "train_with_recovery", removing)
    with pytest.raises(GlassformerError) as refused:
        learn(data, run, "train.log_every=1", "train.save_every=1")
    assert str(refused.value) == (
        f"{run}: was removed or moved during training; put it back and resume it, or train again"
    )
    assert not run.exists()


def test_a_file_that_can_no_longer_be_written_is_named(data, tmp_path, monkeypatch):
    path = tmp_path / "run" / "report.json"
    monkeypatch.setattr(api, "report_on", raising(OSError(errno.EROFS, "Read-only", str(path))))
    with pytest.raises(GlassformerError) as refused:
        learn(data, tmp_path / "run")
    assert str(refused.value) == (
        f"{path}: cannot be read or written (Read-only); check the disk and its permissions, "
        f"then resume the run"
    )
    monkeypatch.setattr(api, "report_on", raising(OSError(errno.EROFS, "Read-only", "/else")))
    with pytest.raises(OSError, match="Read-only"):
        api.resume(tmp_path / "run", quiet=True)
