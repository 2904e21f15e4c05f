"""A full disk and a full memory are told in one line, and what was learned stays."""

import errno

import pytest
import torch
from safetensors import SafetensorError
from small_runs import learn, quickly, same, weights, write_reviews

from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.runs import teaching, verbs
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
    SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
]


@pytest.mark.parametrize("error", FULL, ids=str)
def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_space(
    error, data, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(teaching, "keep_best", raising(error))
        with pytest.raises(GlassformerError, match="no space is left on the disk; free some, then"):
            learn(data, tmp_path / "run")
    verbs.resume(tmp_path / "run", quiet=True)
    learn(data, tmp_path / "peace")
    assert same(weights(tmp_path / "peace"), weights(tmp_path / "run"))


def test_a_disk_that_is_full_from_the_start_keeps_nothing(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Samples, "write", raising(FULL[0]))
    with pytest.raises(GlassformerError, match="or choose another place with --run"):
        learn(data, tmp_path / "run")
    assert list(tmp_path.iterdir()) == [data]


def test_a_full_memory_is_told_with_what_to_do(data, tmp_path, monkeypatch):
    monkeypatch.setattr(State, "__init__", raising(torch.OutOfMemoryError("CUDA out of memory")))
    with pytest.raises(GlassformerError, match="does not fit the memory of the device; use a smal"):
        learn(data, tmp_path / "run")
    assert list(tmp_path.iterdir()) == [data]


def test_other_faults_are_not_hidden(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Samples, "write", raising(FileNotFoundError(errno.ENOENT, "gone")))
    with pytest.raises(FileNotFoundError):
        learn(data, tmp_path / "run")
