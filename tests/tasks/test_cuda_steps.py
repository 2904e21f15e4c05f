"""Steps recorded as CUDA graphs, or compiled, learn what eager steps do."""

from dataclasses import replace

import pytest
import torch
from small_jobs import job_of
from test_filled_batches import JOBS

from glassformer.config import (
    OptimiserConfig,
    RegulariserConfig,
    TrainConfig,
    VirtualAdversaryConfig,
)
from glassformer.training import captured, step_choice
from glassformer.training.loop import train
from glassformer.training.machine import Machine
from glassformer.training.setup import Note, Step, TrainSetup
from glassformer.training.state import State
from glassformer.training.weights import weights_of

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]

SETTINGS = {
    "plain": {},
    "accumulated": {"accumulate": 3, "ema": 0.9},
    "R-Drop": {"regularise": RegulariserConfig(r_drop=1.0)},
    "adversary": {
        "regularise": RegulariserConfig(r_drop=0.5, vat=VirtualAdversaryConfig(weight=1.0))
    },
}
ROUNDING = {"rtol": 2e-3, "atol": 2e-4}


def trained(job, compile_steps, *, steps=12, **settings):
    """The weights, the losses and the notes of a short training."""
    machine = Machine(torch.device("cuda"), torch.float32, compile_steps)
    config = TrainConfig(
        steps=steps,
        log_every=1,
        validate_every=steps + 1,
        optimiser=OptimiserConfig(lr=1e-3),
        **settings,
    )
    setup = TrainSetup(config, replace(job.config.data, batch_tokens=40), machine, seed=3)
    torch.manual_seed(0)
    state = State(job.model().to("cuda"), config)
    events = list(train(state, job, setup))
    notes = [event.text for event in events if isinstance(event, Note)]
    losses = [event.loss for event in events if isinstance(event, Step)]
    return weights_of(state.model), losses, notes


def assert_alike(found, weights):
    for key, weight in weights.items():
        if not key.endswith("to_k.bias"):  # softmax does not see it: its gradient is rounding
            torch.testing.assert_close(found[key], weight, **ROUNDING)


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_recorded_steps_learn_what_others_do(name, settings, tmp_path):
    kind, rows, values = JOBS[name]
    job = job_of(kind, tmp_path / "job", rows * 5, **values)
    weights, losses, notes = trained(job, compile_steps=False, **settings)
    assert notes == []
    recorded, recorded_losses, notes = trained(job, compile_steps=None, **settings)
    assert notes == ["steps run as CUDA graphs"]
    assert recorded_losses == pytest.approx(losses, rel=1e-3)
    assert_alike(recorded, weights)


@pytest.mark.parametrize("name", JOBS)
def test_compiled_steps_learn_what_others_do(name, tmp_path):
    kind, rows, values = JOBS[name]
    job = job_of(kind, tmp_path / "job", rows * 5, **values)
    weights, losses, _ = trained(job, compile_steps=False)
    compiled, compiled_losses, [note] = trained(job, compile_steps=True)
    assert note.startswith("steps are compiled and run as CUDA graphs")
    assert compiled_losses == pytest.approx(losses, rel=1e-3)
    assert_alike(compiled, weights)


def test_dropout_differs_from_step_to_step_and_follows_the_seed(tmp_path):
    kind, rows, values = JOBS["gaps"]
    values = values | {"model": {"encoder": {"dropout": 0.5}}}
    job = job_of(kind, tmp_path / "job", rows[:3], **values)
    for way in (None, True):
        _, losses, _ = trained(job, way, steps=6)
        assert trained(job, way, steps=6)[1] == pytest.approx(losses, rel=1e-5)
        assert len(set(losses)) == len(losses)


def test_what_cannot_be_recorded_says_why(tmp_path, monkeypatch):
    kind, rows, values = JOBS["pairs"]
    job = job_of(kind, tmp_path / "job", rows, **values | {"data": {"form": "padded"}})
    _, _, [note] = trained(job, None, steps=2)
    assert note == ("steps run eagerly, not as CUDA graphs: batches of this job differ in shape")
    job = job_of(kind, tmp_path / "other", rows, **values)
    _, _, [note] = trained(job, None, steps=2, recompute=True)
    assert note.endswith("train.recompute is on")
    monkeypatch.setattr(job, "loss", lambda output, batch: _waiting(job, output, batch))
    _, _, [note] = trained(job, None, steps=2)
    assert note.startswith("steps run eagerly, as capturing them failed: ")


def _waiting(job, output, batch):
    """A loss that waits for the GPU, which a recording cannot."""
    loss = type(job).loss(job, output, batch)
    loss.total.item()
    return loss


@pytest.mark.parametrize("wanted", [None, True])
def test_steps_that_cannot_be_compiled_are_captured_as_they_are(wanted, tmp_path, monkeypatch):
    def fails(model, *, whole):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(captured, "compiled_parts", fails)
    monkeypatch.setattr(step_choice, "COMPILE_SECONDS", 0.0)
    kind, rows, values = JOBS["gaps"]
    job = job_of(kind, tmp_path / "job", rows, **values)
    _, _, [note] = trained(job, wanted, steps=2)
    assert note == "steps run as CUDA graphs without compiling, which failed: no compiler"
