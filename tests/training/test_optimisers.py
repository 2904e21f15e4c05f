"""From gradients to steps: schedules, weight decay, Muon, and what is remembered."""

import math
from itertools import pairwise

import pytest
import torch
from jobs import First, fresh, make, settings, setup_for, some_rows, train_on
from torch import nn

from glassformer.config import OptimiserConfig
from glassformer.config.training import OPTIMISER_NAMES, SCHEDULE_NAMES
from glassformer.core.positions import make_position
from glassformer.models.frontends import Patches
from glassformer.training.loop import train
from glassformer.training.muon import Muon, orthogonal
from glassformer.training.optimisers import Optimisers, group_parameters
from glassformer.training.schedules import SHAPES, lr_at
from glassformer.training.weights import weights_of

FALLING = ("cosine", "linear")


def rates(steps, **asked):
    config = OptimiserConfig(**{"lr": 0.5, **asked})
    return [lr_at(step, steps, config) for step in range(1, steps + 1)]


@pytest.fixture
def task():
    return First({"train": some_rows(13, First.symbols)}, settings())


def test_every_schedule_in_the_settings_exists():
    assert {*SHAPES, "inverse-root"} == {*SCHEDULE_NAMES}


@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
@pytest.mark.parametrize("steps", [1, 2, 7, 100])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.99])
def test_every_rate_lies_between_nothing_and_the_highest(schedule, steps, warmup):
    found = rates(steps, schedule=schedule, warmup=warmup)
    assert all(0 < rate <= 0.5 for rate in found)  # a step at rate 0 would be wasted
    assert max(found) == 0.5 or (schedule in FALLING and round(warmup * steps) == 0)


@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_the_rate_rises_evenly_and_goes_on_without_a_jump(schedule):
    found = rates(100, schedule=schedule, warmup=0.2)
    assert found[:20] == pytest.approx([0.5 * step / 20 for step in range(1, 21)])
    jumps = [abs(b - a) for a, b in pairwise(found[19:])]
    assert max(jumps) < 0.5 * 0.03
    assert all(b <= a for a, b in pairwise(found[19:]))


@pytest.mark.parametrize(("schedule", "half"), [("cosine", 0.5), ("linear", 0.5)])
def test_falling_schedules_are_half_down_halfway_and_end_just_above_the_floor(schedule, half):
    found = rates(99, schedule=schedule, warmup=0.0, floor=0.2)
    assert found[49] == pytest.approx(0.5 * (0.2 + 0.8 * half))
    assert 0.2 * 0.5 < found[-1] < 0.22 * 0.5


def test_cosine_is_half_a_wave_and_linear_a_line():
    way = [step / 10 for step in range(1, 10)]
    assert rates(9, schedule="cosine", warmup=0.0) == pytest.approx(
        [0.5 * (1 + math.cos(math.pi * gone)) / 2 for gone in way]
    )
    assert rates(9, schedule="linear", warmup=0.0) == pytest.approx([0.5 * (1 - g) for g in way])


def test_inverse_root_is_the_formula_of_the_paper():
    """Vaswani et al., 2017: min(step^-0.5, step * warm^-1.5), here as a share of its highest."""
    warm = 16
    found = rates(160, schedule="inverse-root", warmup=0.1)
    paper = [min(step**-0.5, step * warm**-1.5) * warm**0.5 for step in range(1, 161)]
    assert found == pytest.approx([0.5 * share for share in paper])


def test_constant_stays():
    assert set(rates(50, schedule="constant", warmup=0.1)[4:]) == {0.5}


def test_a_step_is_taken_at_the_rate_of_the_schedule(task):
    """AdamW's first step is the rate, whatever the gradient, so the way gone shows it."""
    optimiser = OptimiserConfig(lr=0.01, schedule="linear", warmup=0.5, weight_decay=0.0)
    setup = setup_for(task, steps=10, log_every=1, clip=0.0, optimiser=optimiser)
    state = fresh(task, setup)
    before = state.model.to_class.weight.detach().clone()
    _, events = train_on(task, setup_for(task, steps=10, log_every=1, optimiser=optimiser))
    first = next(train(state, task, setup))
    assert first.lr == pytest.approx(0.01 / 5)
    moved = (state.model.to_class.weight - before).abs()
    assert moved.median().item() == pytest.approx(0.01 / 5, rel=1e-3)
    told = [event.lr for event in events if hasattr(event, "lr")]
    assert told == [lr_at(step, 10, optimiser) for step in range(1, 11)]


def named(model, parameters):
    names = {parameter: name for name, parameter in model.named_parameters()}
    return {names[parameter] for parameter in parameters}


def test_decay_spares_biases_norms_and_embeddings(tmp_path):
    model = make("copy", tmp_path).model()
    _, inside_and_out, spared = group_parameters(model, model.parameters())
    assert not inside_and_out  # its answer is scored with the embedding
    names = {name for name, _ in model.named_parameters()}
    expected = {
        n for n in names if n.endswith("bias") or "norm" in n or "before" in n or "table" in n
    }
    assert named(model, spared) == expected
    assert expected < names


def test_decay_spares_biases_and_tables_that_look_like_matrices():
    model = nn.ModuleDict(
        {
            "position": make_position("transformer-xl", 6, 3, 7),
            "patches": Patches(1, 6, size=2, image=(4, 6)),
            "waves": Patches(1, 6, size=2, image=(4, 6), position="sinusoidal"),
        }
    )
    _, matrices, spared = group_parameters(model, model.parameters())
    assert named(model, matrices) == {
        *("position.to_r.weight", "patches.to_vector.weight", "waves.to_vector.weight")
    }
    assert named(model, spared) == {
        *("position.content", "position.distance", "patches.table"),
        *("patches.to_vector.bias", "waves.to_vector.bias"),
    }


def test_decay_shrinks_matrices_and_nothing_else():
    model = nn.ModuleDict({"words": nn.Embedding(3, 5), "layer": nn.Linear(5, 2)})
    before = {name: tensor.clone() for name, tensor in weights_of(model).items()}
    optimisers = Optimisers(model, OptimiserConfig(weight_decay=0.1))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimisers.step(0.5)
    after = weights_of(model)
    torch.testing.assert_close(after["layer.weight"], before["layer.weight"] * (1 - 0.5 * 0.1))
    assert after["layer.bias"].equal(before["layer.bias"])
    assert after["words.weight"].equal(before["words.weight"])
    assert all(parameter.grad is None for parameter in model.parameters())


def test_adamw_is_pytorchs():
    torch.manual_seed(0)
    ours, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
    theirs.load_state_dict(ours.state_dict())
    optimisers = Optimisers(ours, OptimiserConfig(weight_decay=0.1, beta1=0.8, beta2=0.95))
    groups = [
        {"params": [theirs.weight], "weight_decay": 0.1},
        {"params": [theirs.bias], "weight_decay": 0.0},
    ]
    reference = torch.optim.AdamW(groups, betas=(0.8, 0.95), eps=1e-9, lr=0.03)
    x = torch.randn(7, 3)
    for _ in range(5):
        for layer, step in ((ours, lambda: optimisers.step(0.03)), (theirs, reference.step)):
            layer.zero_grad()
            layer(x).square().sum().backward()
            step()
    torch.testing.assert_close(ours.weight, theirs.weight)
    torch.testing.assert_close(ours.bias, theirs.bias)


def test_muon_takes_the_matrices_inside_blocks_and_adamw_the_rest(tmp_path):
    model = make("copy", tmp_path).model()
    muon, adamw = Optimisers(model, OptimiserConfig(kind="muon")).parts
    in_muon = named(model, [p for group in muon.param_groups for p in group["params"]])
    in_adamw = named(model, [p for group in adamw.param_groups for p in group["params"]])
    shapes = {name: p.ndim for name, p in model.named_parameters()}
    assert in_muon == {name for name, axes in shapes.items() if ".blocks." in name and axes == 2}
    assert in_adamw == set(shapes) - in_muon
    assert len(in_muon) > 5


@pytest.mark.usefixtures("half_on_cpu")
@pytest.mark.parametrize("shape", [(7, 13), (13, 7), (11, 11)], ids=str)
def test_muon_is_pytorchs_to_the_rounding_of_bf16(shape):
    ours, theirs = (nn.Parameter(torch.ones(shape)) for _ in range(2))
    options = {"lr": 0.03, "weight_decay": 0.1}
    optimisers = [
        Muon([ours], **options),
        torch.optim.Muon([theirs], adjust_lr_fn="match_rms_adamw", **options),
    ]
    for _ in range(5):
        gradient = torch.randn(shape)
        for weight, optimiser in zip((ours, theirs), optimisers, strict=True):
            weight.grad = gradient.clone()
            optimiser.step()
    torch.testing.assert_close(ours, theirs, atol=0.005, rtol=0)
    remembered = (part.state_dict()["state"][0]["momentum_buffer"] for part in optimisers)
    torch.testing.assert_close(*remembered)


@pytest.mark.parametrize("shape", [(7, 13), (13, 7)], ids=str)
def test_muon_on_a_cpu_steps_by_orthogonal_matrices_in_fp32(shape):
    found = orthogonal(torch.randn(shape))
    assert found.dtype == torch.float32
    assert found.shape == shape
    lengths = torch.linalg.svdvals(found)
    assert ((lengths > 0.6) & (lengths < 1.3)).all()


@pytest.mark.parametrize("kind", OPTIMISER_NAMES)
def test_every_optimiser_learns_the_task(task, kind):
    optimiser = OptimiserConfig(kind=kind, lr=1e-2)
    _, events = train_on(task, setup_for(task, steps=40, log_every=5, optimiser=optimiser))
    assert events[-1].loss < 0.2 * events[0].loss


def test_muon_without_blocks_is_adamw():
    [only] = Optimisers(nn.Linear(3, 2), OptimiserConfig(kind="muon")).parts
    assert isinstance(only, torch.optim.AdamW)


@pytest.mark.parametrize("kind", OPTIMISER_NAMES)
def test_what_optimisers_remember_comes_back_and_is_their_own(task, kind):
    setup = setup_for(task, steps=3, optimiser=OptimiserConfig(kind=kind))
    state, _ = train_on(task, setup)
    memory = state.optimisers.tensors()
    kinds = {name.partition("/")[2] for name in memory}
    assert {"exp_avg", "exp_avg_sq", "step"} <= kinds
    assert ("momentum_buffer" in kinds) == (kind == "muon")
    other = fresh(task, setup).optimisers
    other.load(memory)
    again = other.tensors()
    assert again.keys() == memory.keys()
    assert all(again[name].equal(memory[name]) for name in memory)
    shared = {tensor.data_ptr() for tensor in memory.values()}
    assert not shared & {tensor.data_ptr() for tensor in again.values()}
