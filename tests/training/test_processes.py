"""Two processes = one, to a tolerance: DDP and FSDP2 over gloo, and checkpoints of several."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from jobs import train_on
from together import STEPS, WAYS, begun, job

from glassformer.training.checkpoints import checkpoint_weights, read_group
from glassformer.training.state import State
from glassformer.training.weights import read_tensors, weights_of

TOLERANCE = {"rtol": 2e-4, "atol": 2e-5}  # fp32, sums in another order, four steps of AdamW
HERE = Path(__file__).parent


def torchrun(*words, processes=2, **options):
    """Start a program in several processes on this machine."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, *launcher, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    done = torchrun(HERE / "together.py", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def single(tmp_path, request):
    """The same way in one process."""
    task, setup = job(request.param, tmp_path / "task", None)
    return request.param, *train_on(task, setup, begun(task, setup))


@pytest.mark.parametrize("single", [way for way in WAYS if way != "ddp-vat"], indirect=True)
def test_two_processes_tell_and_learn_what_one_does(single, together):
    way, state, events = single
    told = json.loads((together / way / "told.json").read_text(encoding="utf-8"))
    assert len(told) == len(events)
    for event, other in zip(events, told, strict=True):
        assert (type(event).__name__, event.step) == (other["kind"], other["step"])
        if other["kind"] == "Step":
            assert other["loss"] == pytest.approx(event.loss, rel=1e-4)
            assert other["norm"] == pytest.approx(event.norm, rel=1e-3)
        else:
            assert other["scores"] == pytest.approx(event.scores, abs=1e-3)
    found = read_tensors(together / way / "weights.safetensors")
    expected = weights_of(state.model)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        if not name.endswith("to_k.bias"):  # softmax does not see it: its gradient is rounding
            torch.testing.assert_close(found[name], tensor, **TOLERANCE)


def test_processes_that_probe_in_directions_of_their_own_learn_too(together):
    """Virtual adversarial training rolls dice in each process: it is no sum over rows."""
    told = json.loads((together / "ddp-vat" / "told.json").read_text(encoding="utf-8"))
    losses = [event["loss"] for event in told if event["kind"] == "Step"]
    assert losses[-1] < losses[0]


SHARDED = [way for way in WAYS if way.startswith("shard")]


@pytest.mark.parametrize("way", SHARDED)
def test_checkpoints_of_two_processes_are_read_by_one(way, together, tmp_path):
    task, setup = job(way, tmp_path / "task", together / way / "checkpoints")
    state = begun(task, setup)
    assert state.load(setup.checkpoints)
    assert state.progress.step == STEPS
    for name, tensor in read_tensors(together / way / "weights.safetensors").items():
        assert weights_of(state.model)[name].equal(tensor)
    _, alone = job(way, tmp_path / "other", tmp_path / "alone")
    train_on(task, alone, begun(task, setup))
    own = State(task.model(), setup.train)
    own.load(tmp_path / "alone")
    for name, tensor in own.optimisers.tensors().items():
        if "to_k.bias" in name:
            continue
        found = state.optimisers.tensors()[name]
        assert found.shape == tensor.shape
        torch.testing.assert_close(found, tensor, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("way", SHARDED)
def test_every_process_writes_a_part_and_no_file_can_run_code(way, together):
    home = together / way / "checkpoints" / f"step-{STEPS}"
    names = {path.name for path in home.iterdir()}
    groups = ["model", "optimiser", *(["average"] if "ema" in way else [])]
    parts = {f"{group}-{n}-of-2.safetensors" for group in groups for n in (0, 1)}
    assert names == parts | {"state.json"}
    sizes = [len(read_tensors(home / f"model-{n}-of-2.safetensors")) for n in (0, 1)]
    assert all(sizes)
    whole = read_group(home, "model")
    half = read_tensors(home / "model-0-of-2.safetensors")
    assert sum(t.numel() for t in half.values()) < 0.6 * sum(t.numel() for t in whole.values())


def test_the_weights_a_sharded_checkpoint_is_used_with_are_its_average(together):
    folder = together / "shard-ema" / "checkpoints"
    found = checkpoint_weights(folder, STEPS)
    own = read_group(folder / f"step-{STEPS}", "model")
    assert found.keys() == own.keys()
    assert any(not found[name].equal(own[name]) for name in own)
