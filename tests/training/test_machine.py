"""The machine: what is asked for is what is used, and what is not there is refused."""

import pytest
import torch
from jobs import make, setup_for, train_on

from glassformer.config import MachineConfig
from glassformer.errors import GlassformerError
from glassformer.training.loop import train
from glassformer.training.machine import Machine, choose_machine
from glassformer.training.setup import TrainSetup
from glassformer.training.state import State


@pytest.fixture
def only_a_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.mark.usefixtures("only_a_cpu")
def test_a_plain_machine_computes_in_fp32_and_as_it_is_written():
    machine = choose_machine(MachineConfig())
    assert machine == Machine(torch.device("cpu"), torch.float32)
    assert machine.described == "cpu, fp32, threads 1"


@pytest.mark.usefixtures("only_a_cpu")
@pytest.mark.parametrize("asked", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_refused(asked):
    with pytest.raises(GlassformerError) as refused:
        choose_machine(MachineConfig(device=asked))
    assert str(refused.value) == (
        f'device="{asked}": not available on this machine, only cpu; use device="auto"'
    )


def test_the_best_device_there_is_is_taken(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_machine(MachineConfig()).device.type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    machine = choose_machine(MachineConfig())
    assert (machine.device.type, machine.precision) == ("cuda", torch.bfloat16)
    assert choose_machine(MachineConfig(device="cpu")).device.type == "cpu"


def test_threads_and_determinism_are_set_as_asked():
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    try:
        machine = choose_machine(MachineConfig(device="cpu", threads=2, deterministic=True))
        assert torch.get_num_threads() == 2
        assert torch.are_deterministic_algorithms_enabled()
        assert machine.described == "cpu, fp32, threads 2"
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])


@pytest.mark.usefixtures("half_on_cpu")
def test_bf16_is_for_products_and_weights_stay_in_fp32(tmp_path):
    task = make("first", tmp_path)
    machine = choose_machine(MachineConfig(device="cpu", precision="bf16"))
    assert machine.described.startswith("cpu, bf16")
    with machine.autocast():
        assert torch.nn.Linear(2, 3)(torch.ones(1, 2)).dtype == torch.bfloat16
    setup = setup_for(task, steps=3, log_every=1)
    exact = train_on(task, setup)[1]
    half = TrainSetup(setup.train, setup.data, machine, setup.seed)
    torch.manual_seed(0)
    state = State(task.model(), half.train)
    rough = list(train(state, task, half))
    assert all(p.dtype == torch.float32 for p in state.model.parameters())
    losses = [[e.loss for e in events if hasattr(e, "loss")] for events in (exact, rough)]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
