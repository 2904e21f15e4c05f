"""What goes wrong in a step, made to happen: numbers that are none, memory that is not enough."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from jobs import First, fresh, make, settings, setup_for, some_rows, train_on

from glassformer.config import OptimiserConfig
from glassformer.errors import GlassformerError, NonFiniteScoresError
from glassformer.models.stacks import recompute_activations
from glassformer.training import loop
from glassformer.training.checkpoints import discard
from glassformer.training.loader import split_batch
from glassformer.training.recovery import train_with_recovery
from glassformer.training.setup import Step, Trouble
from glassformer.training.weights import weights_of

RATE = OptimiserConfig(lr=1e-2, schedule="constant", warmup=0.0)
ROUNDING = {"rtol": 1e-3, "atol": 1e-5}  # sums in another order, in fp32


@pytest.fixture
def task():
    rows = some_rows(13, First.symbols)
    return First({"train": rows, "valid": rows[:5]}, settings())


def same(first, second):
    return first.keys() == second.keys() and all(first[n].equal(second[n]) for n in first)


def breaking(task, monkeypatch, bad):
    """Let the loss be no number whenever `bad` says so, given the rate and the call."""
    true_loss, calls = task.loss, []

    def broken(output, batch):
        calls.append(1)
        found = true_loss(output, batch)
        return replace(found, total=found.total * math.nan) if bad(len(calls)) else found

    monkeypatch.setattr(task, "loss", broken)


def through(task, setup, state=None, stop=lambda: False):
    state = state or fresh(task, setup)
    beginning = {n: t.clone() for n, t in weights_of(fresh(task, setup).model).items()}
    return state, list(train_with_recovery(state, task, setup, lambda: beginning, stop))


def troubles(events):
    return [event for event in events if isinstance(event, Trouble)]


def test_a_loss_that_is_no_number_leads_back_to_the_checkpoint_and_half_the_rate(
    task, tmp_path, monkeypatch
):
    setup = setup_for(
        task, tmp_path, steps=20, log_every=5, validate_every=20, save_every=10, optimiser=RATE
    )
    breaking(task, monkeypatch, lambda call: call == 13)
    state, events = through(task, setup)
    (trouble,) = troubles(events)
    assert trouble.step == 10
    assert trouble.what.startswith("training diverged at step 13 in batch ")
    assert "row " in trouble.what
    assert trouble.what.endswith("went back to step 10, continuing at 0.5x the learning rate")
    rates = {event.step: event.lr for event in events if isinstance(event, Step)}
    assert rates == {5: 1e-2, 10: 1e-2, 15: 5e-3, 20: 5e-3}
    assert state.progress.halvings == 1
    assert all(tensor.isfinite().all() for tensor in weights_of(state.model).values())


def test_a_model_that_diverged_just_before_its_validation_goes_back_as_well(
    task, tmp_path, monkeypatch
):
    setup = setup_for(task, tmp_path, steps=4, log_every=2, validate_every=2, save_every=2)
    told = iter([{"accuracy": 0.5}, KeyboardInterrupt(), NonFiniteScoresError(), {"accuracy": 0.6}])

    def score(model, batches):
        found = next(told)
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr(task, "score", score)
    with pytest.raises(KeyboardInterrupt):  # killed before it is known
        through(task, setup)
    state = fresh(task, setup)
    assert state.load(tmp_path)
    assert (state.progress.step, state.progress.unvalidated) == (4, True)
    state, events = through(task, setup, state)
    (trouble,) = troubles(events)
    assert trouble.what.startswith("training diverged at step 4: loss nan")
    assert trouble.what.endswith("went back to step 2, continuing at 0.5x the learning rate")
    assert state.progress.best == [(0.6, 4)]


def test_a_checkpoint_that_is_no_use_leaves_the_one_before_as_the_newest(task, tmp_path):
    state, _ = train_on(task, setup_for(task, tmp_path, steps=3, save_every=1, validate_every=3))
    for left in ("step-2\n", None):
        discard(tmp_path, state.progress.step)
        latest = tmp_path / "latest"
        assert (latest.read_text() if latest.exists() else None) == left
        assert fresh(task, setup_for(task, steps=3)).load(tmp_path) == (left is not None)
        state.progress.step = 2


def test_before_the_first_checkpoint_it_begins_again(task, tmp_path, monkeypatch):
    setup = setup_for(task, tmp_path, steps=10, log_every=5, validate_every=10, ema=0.5)
    breaking(task, monkeypatch, lambda call: call == 3)
    _, events = through(task, setup)
    (trouble,) = troubles(events)
    assert trouble.step == 0
    assert "went back to step 0" in trouble.what
    monkeypatch.undo()
    slower = replace(setup, checkpoints=tmp_path / "again")
    state = fresh(task, slower)
    state.progress.halvings = 1
    expected, _ = through(task, slower, state)
    reached = fresh(task, setup)
    reached.load(tmp_path)
    assert same(weights_of(reached.model), weights_of(expected.model))
    assert same(reached.averaged_weights, expected.averaged_weights)


def test_a_resumed_run_repeats_the_decision(task, tmp_path, monkeypatch):
    """Killed after stepping back: the lower rate is in the checkpoint it stepped back to."""
    setup = setup_for(task, tmp_path, steps=20, log_every=5, validate_every=20, save_every=10)
    breaking(task, monkeypatch, lambda call: call == 13)
    state, _ = fresh(task, setup), None
    beginning = dict(weights_of(fresh(task, setup).model))
    events = train_with_recovery(state, task, setup, lambda: beginning)
    while not isinstance(next(events), Trouble):
        pass
    events.close()
    monkeypatch.undo()
    resumed = fresh(task, setup)
    assert resumed.load(tmp_path)
    assert (resumed.progress.step, resumed.progress.halvings) == (10, 1)
    assert not resumed.damaged
    assert json.loads((tmp_path / "step-10" / "state.json").read_text())["halvings"] == 1


def test_after_repeated_failure_it_gives_up_in_one_line_that_names_rows(
    task, tmp_path, monkeypatch
):
    setup = setup_for(
        task, tmp_path, steps=20, log_every=5, validate_every=20, save_every=10, optimiser=RATE
    )
    breaking(task, monkeypatch, lambda call: call > 12)
    seen = []
    state = fresh(task, setup)
    with pytest.raises(GlassformerError) as ended:
        seen.extend(train_with_recovery(state, task, setup, lambda: dict(weights_of(state.model))))
    message = str(ended.value)
    assert message.startswith("training diverged at step 11 in batch ")
    assert "row " in message
    assert message.endswith(
        ", after 3 retries at lower learning rates; check these rows, or start a new run with a "
        'lower learning rate: set="train.optimiser.lr=0.0004"'
    )
    assert "\n" not in message


def test_a_loss_that_cannot_be_brought_back_without_checkpoints_ends(task, monkeypatch):
    breaking(task, monkeypatch, lambda call: call == 3)
    with pytest.raises(
        GlassformerError, match=r"^training diverged at step 3 .* a lower learning rate: "
    ):
        through(task, setup_for(task, steps=10, log_every=5))


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    MemoryError(),
]


def holding(task, monkeypatch, most, error):
    """Let no more than so many rows fit the memory."""
    true_forward = task.forward

    def forward(model, batch, **options):
        if model.training and len(batch.source) > most:
            raise error
        return true_forward(model, batch, **options)

    monkeypatch.setattr(task, "forward", forward)


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=["cuda", "cpu", "python"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_what_does_not_fit_is_cut_into_pieces_and_learns_the_same(
    task, accumulate, error, monkeypatch, tmp_path
):
    setup = setup_for(task, steps=6, log_every=2, accumulate=accumulate)
    peace, calm = train_on(task, setup)
    holding(task, monkeypatch, 2, error)
    state, events = train_on(task, replace(setup, checkpoints=tmp_path))
    assert state.progress.micro_batches in (2, 4, 8)
    assert troubles(events)
    assert all("split into" in trouble.what for trouble in troubles(events))
    for name, tensor in weights_of(peace.model).items():
        torch.testing.assert_close(weights_of(state.model)[name], tensor, **ROUNDING)
    assert (state.progress.epoch, state.progress.batch) == (
        peace.progress.epoch,
        peace.progress.batch,
    )
    told = [event for event in events if isinstance(event, Step)]
    expected = [event for event in calm if isinstance(event, Step)]
    for one, other in zip(told, expected, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-4)
    resumed = fresh(task, setup)
    resumed.load(tmp_path)
    assert resumed.progress.micro_batches == state.progress.micro_batches


def test_a_row_that_does_not_fit_alone_ends_in_one_line(task, monkeypatch):
    holding(task, monkeypatch, 0, OUT_OF_MEMORY[0])
    with pytest.raises(GlassformerError) as ended:
        train_on(task, setup_for(task, steps=2))
    assert str(ended.value).startswith(
        "step 1 does not fit in device memory, even with one row at a time: CUDA out of "
        "memory. Tried to allocate 2 GiB; use a smaller size"
    )


def test_other_faults_of_a_step_are_not_taken_for_a_full_memory(task, monkeypatch):
    holding(task, monkeypatch, 0, RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        train_on(task, setup_for(task, steps=2))


@pytest.mark.parametrize(("count", "pieces"), [(1, 1), (1, 4), (2, 1), (3, 2), (2, 8)])
def test_pieces_of_all_processes_are_the_rows_of_the_batch(count, pieces):
    for size in range(1, 12):
        rows = np.arange(10, 10 + size)
        each = [split_batch(rows, pieces, count, rank) for rank in range(count)]
        assert len({len(mine) for mine in each}) == 1  # all make equally many passes
        assert len(each[0]) <= pieces
        assert sorted(np.concatenate([np.concatenate(mine) for mine in each])) == rows.tolist()


@pytest.mark.parametrize("after", [1, 4, 5, 7])
@pytest.mark.parametrize("way", ["plain", "ema"])
def test_stopped_after_any_step_it_goes_on_to_the_same_bits_and_the_same_log(after, way, tmp_path):
    task = make("first", tmp_path / "task", dropout=0.3)
    setup = setup_for(
        task,
        tmp_path / "stopped",
        steps=12,
        log_every=5,
        validate_every=12,
        ema=0.9 if way == "ema" else 0.0,
    )
    peace, calm = train_on(task, replace(setup, checkpoints=tmp_path / "peace"))
    state = fresh(task, setup)
    first = list(loop.train(state, task, setup, lambda: state.progress.step == after))
    assert state.progress.step == after
    resumed = fresh(task, setup)
    assert resumed.load(setup.checkpoints)
    _, rest = train_on(task, setup, resumed)
    assert same(weights_of(resumed.model), weights_of(peace.model))
    speed = {"tokens_per_second": 1.0, "data_wait": 0.0}
    told = [replace(e, **speed) if isinstance(e, Step) else e for e in [*first, *rest]]
    assert told == [replace(e, **speed) if isinstance(e, Step) else e for e in calm]


def test_a_broken_state_is_not_kept_when_it_is_stopped(task, tmp_path, monkeypatch):
    setup = setup_for(task, tmp_path, steps=20, log_every=10, validate_every=20)
    breaking(task, monkeypatch, lambda call: call == 3)
    state = fresh(task, setup)
    with pytest.raises(GlassformerError, match="diverged at step 3"):
        list(loop.train(state, task, setup, lambda: state.progress.step == 4))
    assert not fresh(task, setup).load(tmp_path)


def test_what_is_computed_again_is_the_same_and_takes_less_memory(tmp_path):
    """Dropout falls as it did the first time; inside blocks nothing is kept for the way back."""
    task = make("copy", tmp_path / "task", dropout=0.3)
    setup, learned, kept = setup_for(task, steps=3), [], []
    for again in (False, True):
        state, sizes = fresh(task, setup), []
        if again:
            recompute_activations(state.model)

        def note(tensor, sizes=sizes):
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            train_on(task, setup, state)
        learned.append(weights_of(state.model))
        kept.append(sum(sizes))
    assert same(*learned)
    assert kept[1] < 0.8 * kept[0]
