"""What a step costs is counted, not guessed: operations by hand, memory by what is held."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from formula_cost import Batch, forward_flops
from jobs import CPU, First, fresh, make, settings, setup_for, train_on
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from glassformer.config import OptimiserConfig
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.layout import Layout
from glassformer.runs import speed
from glassformer.training import memory
from glassformer.training.cost import (
    FORMULAS,
    Part,
    SavedTensors,
    batch_cost,
    parts_of,
    state_bytes,
)
from glassformer.training.weights import weights_of

B, T, D, C = 5, 3, 32, First.symbols
ROWS = [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6], [5, 6, 1]]
RAGGED = [[1, 2, 3, 4, 5], [2, 3]]
GATES = {"lstm": 4, "gru": 3}


class Packed(First):
    """The same rows, end to end."""

    def batch(self, part, rows, epoch):
        batch = super().batch(part, rows, epoch)
        return replace(
            batch, source=batch.source[batch.reads.real], reads=Layout.packed(batch.reads.lengths)
        )


def cost_of(rows, kind=First, kernel="auto", stack_kind="attention"):
    """What one batch of all these rows costs, and the model it runs through."""
    config = settings()
    encoder = replace(config.model.encoder, kind=stack_kind)
    task = kind({"train": rows}, replace(config, model=replace(config.model, encoder=encoder)))
    setup = setup_for(task, steps=1)
    model = fresh(task, setup).model
    for layer in model.modules():
        if isinstance(layer, MultiHeadAttention):
            layer.kernel = kernel
    return batch_cost(model, task, task.batch("train", np.arange(len(rows)), 0), setup), model


def by_hand(tokens, pairs, rows, attention):
    """One Transformer block and a classifier: 12 D² weights, and scores of every pair."""
    weights = 12 * D * D
    return 3 * 2 * (tokens * weights + rows * D * C) + attention * 2 * pairs * D


def test_a_transformer_costs_what_the_formula_says():
    cost, _ = cost_of(ROWS)
    assert cost.tokens == B * T
    assert cost.flops == by_hand(B * T, B * T * T, B, 2 + 5)  # the scores are made once more


def test_the_readable_kernel_costs_three_times_the_way_forward():
    cost, model = cost_of(ROWS, kernel="plain")
    assert cost.flops == by_hand(B * T, B * T * T, B, 2 + 4)
    assert cost.flops == 3 * forward_flops(model, Batch(B, T))


def test_packed_rows_cost_no_padding_outside_attention():
    cost, _ = cost_of(RAGGED, Packed, kernel="packed")
    assert cost.tokens == 7
    assert cost.flops == by_hand(7, 2 * 5 * 5, 2, 2 + 5)  # so short, they are read as one group


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize(("rows", "tokens"), [(ROWS, B * T), (RAGGED, 7)], ids=["full", "ragged"])
def test_recurrent_layers_are_seen(cell, rows, tokens):
    cost, _ = cost_of(rows, stack_kind=cell)
    half = D // 2
    cells = 2 * GATES[cell] * half * (D + half)
    whole = 3 * 2 * (tokens * cells + len(rows) * D * C)
    # Read step by step and not in one kernel, what stands before the first needs no gradient.
    first = 2 * len(rows) * 2 * GATES[cell] * half * half
    assert whole - first <= cost.flops <= whole


def test_attention_over_packed_rows_on_a_gpu_counts_each_row_by_itself():
    q, v, ends = torch.zeros(7, 3, 11), torch.zeros(7, 3, 13), torch.tensor([0, 2, 7])
    pairs = 2 * 2 + 5 * 5
    forward, backward = 2 * pairs * 3 * (11 + 13), 2 * pairs * 3 * (3 * 11 + 2 * 13)
    flash, ours = torch.ops.torch_attn, torch.ops.glassformer
    given = (q, q, v, ends, ends)
    assert FORMULAS[flash._varlen_attn](*given, 5, 5) == forward
    assert FORMULAS[ours.short_rows](*given, ends, ends, True, 1.0) == forward
    given = (v, q, q, v, v, v, ends, ends)
    assert FORMULAS[flash._varlen_attn_backward](*given, 5, 5) == backward
    assert FORMULAS[ours.short_rows_backward](*given, ends, ends, True, 1.0) == backward


def test_counting_leaves_a_model_as_it_was(tmp_path):
    task = make("first", tmp_path)
    setup = setup_for(task, steps=1)
    model = fresh(task, setup).model
    before = {name: tensor.clone() for name, tensor in weights_of(model).items()}
    batch_cost(model, task, task.batch("train", np.arange(3), 0), setup)
    assert all(tensor.equal(before[name]) for name, tensor in weights_of(model).items())
    assert all(weight.grad is None for weight in model.parameters())


def test_the_share_of_the_peak_is_counted_on_no_more_rows_than_training_holds(
    tmp_path, monkeypatch
):
    task = make("copy", tmp_path)
    setup, seen = setup_for(task, steps=1), []
    state = fresh(task, setup)
    monkeypatch.setattr(speed, "peak_flops", lambda _: 1e9)
    monkeypatch.setattr(
        speed, "batch_cost", lambda *a: seen.append(len(a[2].source)) or batch_cost(*a)
    )
    shares = []
    for state.progress.micro_batches in (1, 4):
        shares.append(speed.share_of_peak(100.0, state, task, setup))
    assert seen == [5, 2]
    assert shares[1] == pytest.approx(shares[0], rel=0.3)


def test_what_is_kept_for_the_way_back_counts_once_and_without_weights():
    layer, x = nn.Linear(5, 7), torch.randn(3, 5, requires_grad=True)
    kept = SavedTensors(layer)
    with saved_tensors_hooks(kept.count, lambda tensor: tensor):
        y = layer(x).exp()  # keeps x, the weights, and its answer
        (y * y).sum()  # keeps the same answer twice
    assert kept.bytes == 4 * (3 * 5 + 3 * 7)


def test_more_rows_keep_more():
    few, more, most = (cost_of(ROWS * times)[0].activations for times in (1, 2, 3))
    assert few > 0
    assert most - more == pytest.approx(more - few, rel=0.05)
    assert more == pytest.approx(2 * few, rel=0.2)  # some is kept once, whatever the rows


@pytest.mark.parametrize("kind", ["adamw", "muon"])
@pytest.mark.parametrize("frozen", [(), ("encoder.blocks",), ("frontend",)], ids=str)
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_the_memory_of_a_state_is_known_from_shapes(kind, frozen, ema, tmp_path):
    task = make("first", tmp_path)
    optimiser = OptimiserConfig(kind=kind)
    setup = setup_for(task, steps=1, optimiser=optimiser, freeze=frozen, ema=ema)
    state, _ = train_on(task, setup)
    foreseen = state_bytes(state.model, setup.train)
    assert foreseen.optimiser == sum(x.nbytes for x in state.optimisers.tensors().values())
    assert foreseen.weights == sum(x.nbytes for x in weights_of(state.model).values())
    assert foreseen.averages == (
        sum(x.nbytes for x in state.average.weights.values()) if ema else 0
    )
    learning = [weight for weight in state.model.parameters() if weight.requires_grad]
    assert foreseen.gradients == 4 * sum(weight.numel() for weight in learning)


def test_parameters_are_told_by_part_and_whether_they_learn(tmp_path):
    task = make("first", tmp_path)
    model = fresh(task, setup_for(task, steps=1, freeze=("frontend",))).model
    found = parts_of(model)
    assert found["frontend"] == Part(0, (C + 1) * D)
    assert found["to_class"] == Part(D * C + C, 0)
    assert sum(p.trainable + p.frozen for p in found.values()) == sum(
        weight.numel() for weight in model.parameters()
    )


# Memory


def test_a_peak_is_the_most_that_was_held_since_it_was_forgotten():
    device = CPU.device
    memory.reset_peak(device)
    before = memory.peak(device)
    if before is None:
        pytest.skip("this system does not tell")
    large = torch.ones(64 * 2**20, dtype=torch.uint8)
    del large
    assert memory.peak(device) - before > 50 * 2**20


def test_freed_memory_is_used_again_without_the_kernel_until_it_is_trimmed():
    resource = pytest.importorskip("resource")
    if memory._set is None:
        pytest.skip("a setting of glibc")

    def faults():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        tables = [torch.zeros(5 * 2**20) for _ in range(3)]  # 20 MB each
        del tables
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    memory.keep_heap(CPU.device)
    assert min(faults() for _ in range(5)) < 100  # small blocks may settle between them at first
    memory.trim_heap(CPU.device)
    assert faults() > 1000


def test_there_is_room_for_what_is_free_and_what_is_held_already(tmp_path, monkeypatch):
    for name, value in {
        "PROCESS": tmp_path,
        "MACHINE": tmp_path / "machine",
        "GROUP": tmp_path,
    }.items():
        monkeypatch.setattr(memory, name, value)
    device = CPU.device
    assert memory.capacity(device) is None
    (tmp_path / "status").write_text("Name:\tpython\nVmRSS:\t    300 kB\n")
    (tmp_path / "machine").write_text("MemTotal:  9000 kB\nMemAvailable:   5000 kB\n")
    assert memory.capacity(device) == 5300 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1024\n")
    assert memory.capacity(device) == 5300 * 1024
    (tmp_path / "memory.max").write_text(f"{1024 * 1001}\n")
    assert memory.capacity(device) == 1300 * 1024


@pytest.mark.parametrize(
    ("peaks", "foreseen"),
    [
        ({10: 1400, 20: 1400}, 1400 + 2 * 250),  # a quarter of the heap at least, for an e-fold
        ({10: 1386, 20: 1400}, 1400 + 2 * 250),
        ({1: 100, 10: 1054, 20: 1400}, 1400 + 2 * 346 / math.log(2)),  # as it grew of late
        ({20: 1400}, 1400 + 2 * 250),
    ],
)
def test_the_heap_of_a_cpu_grows_with_the_logarithm_of_the_steps(peaks, foreseen):
    steps = round(20 * math.e**2)
    assert memory.projected_peak(CPU.device, peaks, 400, steps) == pytest.approx(foreseen, rel=0.01)
    assert memory.projected_peak(CPU.device, peaks, 400, 7) == 1400
    assert memory.projected_peak(torch.device("cuda"), peaks, 400, steps) == 1400
