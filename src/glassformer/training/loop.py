"""The loop: one for every job, a generator of what happened.

The caller owns it: the command line draws a bar, a notebook a curve, a test asserts. Numbers are
read from the device only when they are reported.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from glassformer import processes
from glassformer.errors import GlassformerError, is_out_of_memory
from glassformer.tasks.task import SomeBatch, Task
from glassformer.training import memory
from glassformer.training.ddp import alone, spread
from glassformer.training.gradients import settle
from glassformer.training.loader import Place, training_batches
from glassformer.training.machine import Machine
from glassformer.training.meters import Meters
from glassformer.training.objective import objective
from glassformer.training.schedules import lr_at
from glassformer.training.setup import Event, TrainSetup, Trouble
from glassformer.training.state import State
from glassformer.training.validation import save_and_validate, validate_saved
from glassformer.training.weights import weights_of

Taken = Sequence[tuple[Place, SomeBatch]]


@dataclass(frozen=True, slots=True)
class BatchLoss:
    """What a batch lost, over how many things, in how many tokens; an idle one nothing."""

    place: Place
    total: Tensor
    count: Tensor
    tokens: int


def train(
    state: State, task: Task, setup: TrainSetup, stop: Callable[[], bool] = lambda: False
) -> Generator[Event, None, None]:
    """Teach a model its job, in place, from wherever its state stands.

    Args:
        stop: Asked after every step and every batch of a validation; when it holds, the state is
            saved and the loop ends. A validation that was begun is made when training goes on.
    """
    progress, model = state.progress, ready(state.model, setup.machine)
    called = spread(model, setup.machine)
    batches = training_batches(task, setup, progress.epoch, progress.batch, progress.micro_batches)
    meters = Meters(setup.machine.device, progress.since)
    try:
        if progress.unvalidated:
            yield from validate_saved(state, model, task, setup, stop)
        while progress.step < setup.steps and not (progress.stopped or progress.unvalidated):
            model.train()
            taken = whole_batches(batches, setup.train.accumulate)
            said = None
            try:
                losses = add_gradients(state, called, task, setup, taken)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                said = str(error) or "out of memory"
            if said is not None:  # outside of `except`, which would hold on to the memory
                yield cut_smaller(state, taken, said)
                batches.close()
                at = progress.epoch, progress.batch, progress.micro_batches
                batches = training_batches(task, setup, *at)
                continue
            move(state, setup, losses, meters)
            last, _ = taken[-1]
            progress.epoch, progress.batch = last.next_epoch, last.next_batch
            reports = setup.reports(progress.step)
            if reports:
                told = meters.read(progress.step, setup, progress.pace)
                progress.seconds += time.perf_counter() - meters.started
                progress.since = []
                yield told
                yield from save_and_validate(state, model, task, setup, stop)
                memory.tidy(setup.machine.device)
                meters = Meters(setup.machine.device)
            if asked_to_stop(stop, reports):
                leave(state, setup, meters, reports)
                return
    finally:
        batches.close()
        model.eval()


def whole_batches(batches: Iterator[tuple[Place, SomeBatch]], count: int) -> Taken:
    """So many batches, with all micro-batches of each."""
    taken = []
    while count:
        taken.append(next(batches))
        count -= taken[-1][0].ends
    return taken


def learn(
    state: State, model: nn.Module, task: Task, setup: TrainSetup, taken: Taken, meters: Meters
) -> None:
    """One step: gradients of all its batches, and a move."""
    move(state, setup, add_gradients(state, model, task, setup, taken), meters)


def add_gradients(
    state: State, model: nn.Module, task: Task, setup: TrainSetup, taken: Taken
) -> list[BatchLoss]:
    """Gradients of all batches of the next step, added up, and what each of them lost."""
    losses = []
    for number, (place, batch) in enumerate(taken):
        dice = step_seed(setup.seed, state.progress.step + 1, number, processes.rank())
        with alone(model, number + 1 < len(taken)):
            with setup.machine.autocast():
                total, loss = objective(model, task, batch, setup.train.regularise, dice)
            (total * 0 if place.idle else total).backward()
        share = 0.0 if place.idle else 1.0
        losses.append(
            BatchLoss(place, share * loss.total.detach(), share * loss.count, batch.tokens)
        )
    return losses


def move(state: State, setup: TrainSetup, losses: list[BatchLoss], meters: Meters) -> None:
    """A move along the gradients, which are divided once, by what all batches count."""
    step = state.progress.step + 1
    count = torch.stack([loss.count for loss in losses]).sum()
    norm = settle(state.model, count, setup.train.clip)
    state.optimisers.step(state.progress.pace * lr_at(step, setup.steps, setup.train.optimiser))
    if state.average is not None:
        state.average.update(weights_of(state.model), step)
    state.progress.step = step
    for loss in losses:
        meters.add(step, loss.place, loss.total, loss.count, loss.tokens)
    meters.add_norm(step, losses[-1].place, norm)


def cut_smaller(state: State, taken: Taken, said: str) -> Trouble:
    """Cut every batch into twice as many micro-batches, since they did not fit into memory.

    The step is made again: nothing has moved yet. Which rows it learns from stays the same.
    """
    state.optimisers.forget()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    progress = state.progress
    if processes.world_size() > 1 or max(len(place.rows) for place, _ in taken) == 1:
        one = "" if processes.world_size() > 1 else " even with one row at a time"
        raise GlassformerError(
            f"step {progress.step + 1:,} does not fit the memory of the device{one}: "
            f"{said.splitlines()[0]}; use a smaller --size, shorter rows with task.max_length, or "
            f"smaller batches with data.batch_tokens and train.accumulate"
        )
    progress.micro_batches *= 2
    return Trouble(
        progress.step + 1,
        f"a batch does not fit into memory: each is cut into {progress.micro_batches} "
        f"micro-batches from here on, the steps stay the same",
    )


def asked_to_stop(stop: Callable[[], bool], reports: bool) -> bool:
    """Whether to stop after this step; several processes agree on it when they report."""
    if processes.world_size() == 1:
        return stop()
    return reports and processes.any_of(stop())


def leave(state: State, setup: TrainSetup, meters: Meters, reported: bool) -> None:
    """Save what was learned so far, with the sums of what was not told yet."""
    if setup.checkpoints is None or (reported and setup.saves(state.progress.step)):
        return
    if not reported:
        meters.read(state.progress.step, setup)  # a state that is broken must not be kept
        state.progress.since = meters.sums()
        state.progress.seconds += time.perf_counter() - meters.started
    state.save(setup.checkpoints)


def step_seed(seed: int, step: int, number: int, process: int = 0) -> int:
    """Where the dice of a batch of a step begin: dropout follows from these numbers alone."""
    words = (seed, step, number, process) if process else (seed, step, number)
    state = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return int(state[0] >> 1)  # as PyTorch takes it, whatever the person's seed


def ready(model: nn.Module, machine: Machine) -> nn.Module:
    """The model as it is called: compiled, where that is asked for."""
    return torch.compile(model, dynamic=True) if machine.compile else model  # type: ignore[return-value]
