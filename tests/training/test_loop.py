"""The loop: what a step does, what is told, what is kept, and when it ends."""

import math
import re
import threading
from dataclasses import replace

import pytest
import torch
from jobs import First, fresh, make, settings, setup_for, some_rows, train_on

from glassformer.config import OptimiserConfig, RegulariserConfig
from glassformer.errors import GlassformerError
from glassformer.runs.log import Log, curves
from glassformer.tasks.task import Loss
from glassformer.training.checkpoints import checkpoint_weights
from glassformer.training.loader import (
    BatchSource,
    TrainingBatch,
    evaluation_batches,
    training_batches,
)
from glassformer.training.loop import accumulate_gradients, step_seed, train, train_step
from glassformer.training.meters import Meters, idle_waits
from glassformer.training.setup import VALIDATIONS, Step, Validation
from glassformer.training.step import EagerStep
from glassformer.training.validation import validate
from glassformer.training.weights import using_weights, weights_of

ROUNDING = {"rtol": 1e-4, "atol": 1e-6}  # sums in another order, in fp32
PLAIN_RATE = OptimiserConfig(lr=1e-2, schedule="constant", warmup=0.0, weight_decay=0.0)


@pytest.fixture
def task():
    rows = some_rows(13, First.symbols)
    return First({"train": rows, "valid": rows[:5]}, settings())


@pytest.fixture
def copy(tmp_path):
    return make("copy", tmp_path / "copy")


def copies(state):
    return {name: tensor.clone() for name, tensor in weights_of(state.model).items()}


def same(first, second):
    return all(first[name].equal(second[name]) for name in first)


def gradient_of(task, setup, batches, monkeypatch):
    """The gradients that a step hands to the optimisers."""
    state, seen = fresh(task, setup), {}

    def noted(rate):
        seen.update((n, p.grad.clone()) for n, p in state.model.named_parameters())

    monkeypatch.setattr(state.optimisers, "step", noted)
    meters = Meters(setup.machine.device)
    train_step(state, EagerStep(state.model, task, setup), setup, batches, meters)
    return seen, meters


def as_batches(task, *groups):
    rows = [torch.tensor(group).numpy() for group in groups]
    sources = [BatchSource(0, 0, some, some, False, True, 0, 1) for some in rows]
    batches = [task.batch("train", some, 0) for some in rows]
    return [
        TrainingBatch(source, batch, batch.tokens, fixed_shape=False)
        for source, batch in zip(sources, batches, strict=True)
    ]


@pytest.mark.parametrize("name", ["copy", "ctc", "first"])
def test_one_batch_of_eight_teaches_what_eight_of_one_do(name, tmp_path, monkeypatch):
    """Also when the parts hold different numbers of rows and of tokens: all is divided once."""
    task = make(name, tmp_path)
    setup = setup_for(task, steps=1, clip=0.0)
    splits = [[range(8)], [[row] for row in range(8)], [[0], [1, 2, 3, 4, 5], [6, 7]]]
    whole, *others = (
        gradient_of(task, setup, as_batches(task, *map(list, split)), monkeypatch)[0]
        for split in splits
    )
    for other in others:
        for key, gradient in whole.items():
            torch.testing.assert_close(other[key], gradient, **ROUNDING)


def test_accumulating_gives_the_weights_of_larger_batches(task):
    """1x8 = 8x1 through the whole loop, at dropout 0: the rows are the same, the cuts differ."""
    rows = [[symbol % 7, 1, 2] for symbol in range(8)]
    large = First({"train": rows}, settings(batch_tokens=24))
    small = First({"train": rows}, settings(batch_tokens=3))
    one, _ = train_on(large, setup_for(large, steps=5))
    eight, _ = train_on(small, setup_for(small, steps=5, accumulate=8))
    for name, tensor in weights_of(one.model).items():
        torch.testing.assert_close(weights_of(eight.model)[name], tensor, rtol=1e-3, atol=1e-5)
    assert (one.progress.epoch, eight.progress.epoch) == (5, 5)


def test_gradients_are_those_of_the_sum_divided_once_by_the_count(task, monkeypatch):
    setup = setup_for(task, steps=1, clip=0.0)
    batches = as_batches(task, [0, 1, 2], [3, 4, 5, 6, 7])
    found, meters = gradient_of(task, setup, batches, monkeypatch)
    model = fresh(task, setup).model.train()
    losses = [task.loss(task.forward(model, piece.batch), piece.batch) for piece in batches]
    mean = (losses[0].total + losses[1].total) / 8
    mean.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, **ROUNDING)
    told = meters.close(1).read(setup)
    assert told.loss == pytest.approx(mean.item(), rel=1e-5)
    length = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    assert told.norm == pytest.approx(length.item(), rel=1e-4)
    assert meters.tokens == sum(piece.tokens for piece in batches)


def test_gradients_longer_than_the_clip_are_cut_to_it_and_others_left(task, monkeypatch):
    batches = as_batches(task, [0, 1, 2])
    free, meters = gradient_of(task, setup_for(task, steps=1, clip=0.0), batches, monkeypatch)
    length = meters.norm.item()
    for clip, expected in [(length / 2, 0.5), (length * 2, 1.0)]:
        setup = setup_for(task, steps=1, clip=clip)
        found, clipped = gradient_of(task, setup, batches, monkeypatch)
        assert clipped.norm.item() == length  # told as it was
        for name in free:
            torch.testing.assert_close(found[name], expected * free[name], rtol=1e-4, atol=1e-8)


def test_what_is_frozen_stays_and_the_rest_moves(copy):
    setup = setup_for(copy, steps=2, freeze=("encoder", "decoder.blocks.0.attention.to_q"))
    state = fresh(copy, setup)
    before = copies(state)
    train_on(copy, setup, state)
    after = weights_of(state.model)
    stays = {name for name in before if after[name].equal(before[name])}
    frozen = ("encoder.", "decoder.blocks.0.attention.to_q.")
    assert stays == {name for name in before if name.startswith(frozen)}
    assert stays


def test_a_frozen_part_may_go_by_any_name_of_what_it_shares(tmp_path):
    task = make("copy", tmp_path, share=True)
    setup = setup_for(task, steps=1, freeze=("target",))
    state = fresh(task, setup)
    assert state.model.frontend is state.model.target
    assert not state.model.frontend.table.weight.requires_grad


@pytest.mark.parametrize("start", ["encode", "encoder.", "to_klass"])
def test_a_part_to_freeze_that_is_not_there_is_refused_with_the_parts_there_are(task, start):
    with pytest.raises(GlassformerError) as refused:
        fresh(task, setup_for(task, steps=1, freeze=(start,)))
    assert str(refused.value) == (
        f"train.freeze: no parameter name starts with {start!r}; the model's modules are encoder, "
        f"frontend, to_class"
    )


def test_freezing_everything_is_refused(task):
    with pytest.raises(GlassformerError, match=r"^train\.freeze leaves nothing to train; freeze"):
        fresh(task, setup_for(task, steps=1, freeze=("encoder", "frontend", "to_class")))


@pytest.mark.parametrize(("loss", "at"), [(math.nan, 12), (math.nan, 15), (math.inf, 15)])
def test_a_loss_that_is_no_number_ends_in_one_clear_line(task, loss, at, monkeypatch, tmp_path):
    setup = setup_for(task, tmp_path / "checkpoints", steps=20, log_every=5, validate_every=10)
    true_loss, calls = task.loss, []

    def broken(output, batch):
        calls.append(1)
        found = true_loss(output, batch)
        return replace(found, total=found.total * loss) if len(calls) == at else found

    monkeypatch.setattr(task, "loss", broken)
    with pytest.raises(GlassformerError) as ended:
        train_on(task, setup)
    message = str(ended.value)
    assert re.fullmatch(
        rf"training diverged at step {at} in batch \d of epoch \d+: loss {loss}, gradient norm "
        r"(nan|inf); lower the learning rate with set=.train\.optimiser\.lr=\.\.\..",
        message,
    )
    weights = checkpoint_weights(tmp_path / "checkpoints", 10)  # the last good state is there
    assert all(tensor.isfinite().all() for tensor in weights.values())
    assert not [t for t in threading.enumerate() if t.name.startswith("batches")]


def test_a_gradient_too_long_to_measure_is_seen_even_if_the_next_ones_are_fine(task, monkeypatch):
    """Clipping makes nothing of it, so the weights and the losses after it look healthy."""
    true_loss, calls = task.loss, []

    def broken(output, batch):
        calls.append(1)
        found = true_loss(output, batch)
        return replace(found, total=found.total * 1e30) if len(calls) == 2 else found

    monkeypatch.setattr(task, "loss", broken)
    with pytest.raises(GlassformerError, match=r"at step 2 in batch .*, gradient norm inf;"):
        train_on(task, setup_for(task, steps=10, log_every=5, validate_every=10))


def test_validating_leaves_the_mode_and_the_weights_as_they_were(task):
    setup = setup_for(task, steps=3, ema=0.5)
    state, _ = train_on(task, setup)
    before = copies(state)
    assert not same(before, state.averaged_weights)
    state.model.train()
    with using_weights(state.model, state.averaged_weights):
        averaged = validate(state.model, task, setup)
        assert same(weights_of(state.model), state.averaged_weights)
    assert state.model.training
    assert same(weights_of(state.model), before)
    state.model.eval()
    assert validate(state.model, task, setup).keys() == averaged.keys()
    assert not state.model.training


def test_a_score_that_fails_leaves_the_mode_and_the_weights_too(task, monkeypatch):
    setup = setup_for(task, steps=3, ema=0.5)
    state, _ = train_on(task, setup)
    before = copies(state)
    state.model.train()

    def broken(model, batches):
        next(iter(batches))
        raise ZeroDivisionError

    monkeypatch.setattr(task, "score", broken)
    with pytest.raises(ZeroDivisionError), using_weights(state.model, state.averaged_weights):
        validate(state.model, task, setup)
    assert state.model.training
    assert same(weights_of(state.model), before)
    assert not [t for t in threading.enumerate() if t.name.startswith("batches")]


def test_the_model_learns_in_training_mode_whatever_the_caller_does_between(tmp_path):
    """A caller may look at the model between steps; dropout is on again in the next one."""
    task = make("first", tmp_path, dropout=0.5)
    setup = setup_for(task, steps=6, log_every=1)
    state = fresh(task, setup)
    for _ in train(state, task, setup):
        state.model.eval()
    undisturbed, _ = train_on(task, setup)
    assert same(weights_of(state.model), weights_of(undisturbed.model))


def test_the_same_seed_gives_the_same_run_and_another_another(tmp_path):
    task = make("first", tmp_path, dropout=0.3, token_dropout=0.2)
    runs = [train_on(task, setup_for(task, steps=5, log_every=1, seed=s)) for s in (3, 3, 4)]
    (one, first), (two, second), (three, third) = runs
    assert same(weights_of(one.model), weights_of(two.model))
    assert without_speed(first) == without_speed(second)
    assert without_speed(first) != without_speed(third)
    assert not same(weights_of(one.model), weights_of(three.model))


def test_every_batch_of_every_step_has_dice_of_its_own():
    places = [(seed, step, n) for seed in (0, 1, 2**32 - 1) for step in range(50) for n in range(7)]
    seeds = [step_seed(*place) for place in places]
    assert len({seed % 2**32 for seed in seeds}) == len(places)  # as the generator of a CPU cuts
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert step_seed(1, 2, 3) == seeds[places.index((1, 2, 3))]


def without_speed(events):
    return [
        replace(e, tokens_per_second=1.0, data_wait=0.0) if isinstance(e, Step) else e
        for e in events
    ]


def test_steps_and_validations_are_told_when_they_are_due(task):
    _, events = train_on(task, setup_for(task, steps=11, log_every=4, validate_every=5))
    steps = [event.step for event in events if isinstance(event, Step)]
    tried = [event.step for event in events if isinstance(event, Validation)]
    assert steps == [4, 5, 8, 10, 11]
    assert tried == [5, 10, 11]  # the last step always
    assert all(event.tokens_per_second > 0 for event in events if isinstance(event, Step))


class At:
    """An event on a GPU, at a time in seconds."""

    def __init__(self, at):
        self.at = at

    def elapsed_time(self, other, /):
        return 1000 * (other.at - self.at)


def moments(*spans):
    return [(At(start), At(end)) for start, end in spans]


def test_a_wait_counts_while_the_device_has_nothing_to_do():
    steps = moments((10.0, 11.0), (11.0, 12.0), (12.5, 13.0))
    assert idle_waits([0.3, 0.7, 0.2], [], None) == pytest.approx(1.2)  # a CPU only waits
    busy_until, idle_since = At(9.9), At(2.0)
    # The device runs on during the second wait, and stands still longer than the third lasts.
    assert idle_waits([0.3, 0.7, 0.2], steps, busy_until) == pytest.approx(0.1 + 0.0 + 0.2)
    assert idle_waits([0.3, 0.7, 0.2], steps, idle_since) == pytest.approx(0.3 + 0.0 + 0.2)
    assert idle_waits([0.3, 0.7, 0.2], steps, None) == pytest.approx(0.3 + 0.0 + 0.2)


def test_a_step_tells_the_mean_loss_since_the_last_report(task):
    each = train_on(task, setup_for(task, steps=6, log_every=1, validate_every=6))[1]
    some = train_on(task, setup_for(task, steps=6, log_every=3, validate_every=6))[1]
    setup, place, counts = setup_for(task, steps=6), (0, 0), []
    batches = training_batches(task, setup, *place)
    for _ in range(6):
        counts.append(len(next(batches).batch.source))
    batches.close()
    losses = [event.loss for event in each if isinstance(event, Step)]
    told = [event.loss for event in some if isinstance(event, Step)]
    for half, found in enumerate(told):
        taken = range(3 * half, 3 * half + 3)
        mean = sum(losses[n] * counts[n] for n in taken) / sum(counts[n] for n in taken)
        assert found == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize(("steps", "times"), [(100, 10), (7, 7), (95, 10), (1, 1)])
def test_a_run_is_tried_about_ten_times_unless_told_otherwise(task, steps, times):
    setup = setup_for(task, steps=steps)
    tried = [step for step in range(1, steps + 1) if setup.validates(step)]
    assert len(tried) == times <= VALIDATIONS
    assert tried[-1] == steps
    assert all(setup.saves(step) and setup.reports(step) for step in tried)


def test_a_plan_without_a_number_of_steps_is_refused(task):
    with pytest.raises(ValueError, match=r"^train\.steps is not set; set it before training$"):
        train_on(task, setup_for(task, epochs=1.0))


def test_a_training_part_without_rows_is_refused():
    task = First({"valid": some_rows(3, First.symbols)}, settings())
    with pytest.raises(GlassformerError, match=r"^the training split has no rows"):
        train_on(task, setup_for(task, steps=2))


def test_a_part_without_rows_is_asked_about_in_vain(task):
    with pytest.raises(GlassformerError, match=r"^the test split has no rows; add some$"):
        evaluation_batches(task, setup_for(task), "test")


def test_a_job_without_a_validation_part_is_trained_and_saved_all_the_same(tmp_path):
    task = First({"train": some_rows(7, First.symbols)}, settings())
    state, events = train_on(task, setup_for(task, tmp_path / "checkpoints", steps=4))
    assert {type(event) for event in events} == {Step}
    assert state.progress.best == []
    assert (tmp_path / "checkpoints" / "step-4").is_dir()


def test_a_batch_that_counts_nothing_moves_nothing(task, monkeypatch):
    monkeypatch.setattr(
        task, "loss", lambda output, batch: Loss(output.sum() * 0, torch.tensor(0.0))
    )
    setup = setup_for(task, steps=1, optimiser=PLAIN_RATE)
    state = fresh(task, setup)
    before = copies(state)
    train_on(task, setup, state)
    assert same(weights_of(state.model), before)


def test_what_is_not_the_validation_loss_is_logged_as_the_objective(task, tmp_path, monkeypatch):
    metrics = tmp_path / "metrics.jsonl"
    for number, note in enumerate([None, "It is smoothed."]):
        monkeypatch.setattr(type(task), "objective_note", note)
        _, events = train_on(task, setup_for(task, steps=1))
        log = Log(metrics, tmp_path / "board", number)
        for event in events:
            log.write(replace(event, step=number + 1))
    found = {name: [step for step, _ in line] for name, line in curves(metrics).items()}
    assert found.pop("training loss") == [1]
    assert found.pop("training objective") == [2]
    assert "training loss" not in found


def test_an_infinite_loss_of_rows_that_other_processes_learn_counts_nothing(task, monkeypatch):
    infinite = Loss(torch.tensor(math.inf), torch.tensor(1.0))
    monkeypatch.setattr(EagerStep, "__call__", lambda self, batch, seed: infinite)
    setup = setup_for(task, steps=1)
    (batch,) = as_batches(task, [0])
    idle = replace(batch, source=replace(batch.source, idle=True))
    step = EagerStep(fresh(task, setup).model, task, setup)
    (loss,) = accumulate_gradients(step, setup, 0, [idle])
    assert (float(loss.logged.total), float(loss.count)) == (0.0, 0.0)


def test_regularisers_reach_the_loop(tmp_path):
    task = make("first", tmp_path, dropout=0.3)
    plain, _ = train_on(task, setup_for(task, steps=3))
    other, _ = train_on(task, setup_for(task, steps=3, regularise=RegulariserConfig(r_drop=1.0)))
    assert not same(weights_of(plain.model), weights_of(other.model))
