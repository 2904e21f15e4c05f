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
from glassformer.training.feeding import Place, training_batches
from glassformer.training.gradients import settle
from glassformer.training.machine import Machine
from glassformer.training.objective import objective
from glassformer.training.plan import Event, Plan, Trouble
from glassformer.training.schedules import rate_at
from glassformer.training.spreading import alone, spread
from glassformer.training.state import State
from glassformer.training.tally import Tally
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
    state: State, task: Task, plan: Plan, stop: Callable[[], bool] = lambda: False
) -> Generator[Event, None, None]:
    """Teach a model its job, in place, from wherever its state stands.

    Args:
        stop: Asked after every step and every batch of a validation; when it holds, the state is
            saved and the loop ends. A validation that was begun is made when training goes on.
    """
    progress, model = state.progress, ready(state.model, plan.machine)
    called = spread(model, plan.machine)
    batches = training_batches(task, plan, progress.epoch, progress.batch, progress.pieces)
    tally = Tally(plan.machine.device, progress.since)
    try:
        if progress.unvalidated:
            yield from validate_saved(state, model, task, plan, stop)
        while progress.step < plan.steps and not (progress.stopped or progress.unvalidated):
            model.train()
            taken = whole_batches(batches, plan.train.accumulate)
            said = None
            try:
                losses = add_gradients(state, called, task, plan, taken)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                said = str(error) or "out of memory"
            if said is not None:  # outside of `except`, which would hold on to the memory
                yield cut_smaller(state, taken, said)
                batches.close()
                at = progress.epoch, progress.batch, progress.pieces
                batches = training_batches(task, plan, *at)
                continue
            move(state, plan, losses, tally)
            last, _ = taken[-1]
            progress.epoch, progress.batch = last.next_epoch, last.next_batch
            reports = plan.reports(progress.step)
            if reports:
                told = tally.read(progress.step, plan, progress.pace)
                progress.seconds += time.perf_counter() - tally.started
                progress.since = []
                yield told
                yield from save_and_validate(state, model, task, plan, stop)
                memory.tidy(plan.machine.device)
                tally = Tally(plan.machine.device)
            if asked_to_stop(stop, reports):
                leave(state, plan, tally, reports)
                return
    finally:
        batches.close()
        model.eval()


def whole_batches(batches: Iterator[tuple[Place, SomeBatch]], count: int) -> Taken:
    """So many batches, with all pieces of each."""
    taken = []
    while count:
        taken.append(next(batches))
        count -= taken[-1][0].ends
    return taken


def learn(
    state: State, model: nn.Module, task: Task, plan: Plan, taken: Taken, tally: Tally
) -> None:
    """One step: gradients of all its batches, and a move."""
    move(state, plan, add_gradients(state, model, task, plan, taken), tally)


def add_gradients(
    state: State, model: nn.Module, task: Task, plan: Plan, taken: Taken
) -> list[BatchLoss]:
    """Gradients of all batches of the next step, added up, and what each of them lost."""
    losses = []
    for number, (place, batch) in enumerate(taken):
        dice = dice_seed(plan.seed, state.progress.step + 1, number, processes.place())
        with alone(model, number + 1 < len(taken)):
            with plan.machine.autocast():
                total, loss = objective(model, task, batch, plan.train.regularise, dice)
            (total * 0 if place.idle else total).backward()
        share = 0.0 if place.idle else 1.0
        losses.append(
            BatchLoss(place, share * loss.total.detach(), share * loss.count, batch.tokens)
        )
    return losses


def move(state: State, plan: Plan, losses: list[BatchLoss], tally: Tally) -> None:
    """A move along the gradients, which are divided once, by what all batches count."""
    step = state.progress.step + 1
    count = torch.stack([loss.count for loss in losses]).sum()
    norm = settle(state.model, count, plan.train.clip)
    state.optimisers.step(state.progress.pace * rate_at(step, plan.steps, plan.train.optimiser))
    if state.average is not None:
        state.average.update(weights_of(state.model), step)
    state.progress.step = step
    for loss in losses:
        tally.add(step, loss.place, loss.total, loss.count, loss.tokens)
    tally.add_norm(step, losses[-1].place, norm)


def cut_smaller(state: State, taken: Taken, said: str) -> Trouble:
    """Halve the pieces of every batch, since the memory did not hold them.

    The step is made again: nothing has moved yet. Which rows it learns from stays the same.
    """
    state.optimisers.forget()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    progress = state.progress
    if processes.count() > 1 or max(len(place.rows) for place, _ in taken) == 1:
        one = "" if processes.count() > 1 else " even with one row at a time"
        raise GlassformerError(
            f"step {progress.step + 1:,} does not fit the memory of the device{one}: "
            f"{said.splitlines()[0]}; use a smaller --size, shorter rows with task.max_length, or "
            f"smaller batches with data.batch_tokens and train.accumulate"
        )
    progress.pieces *= 2
    return Trouble(
        progress.step + 1,
        f"the memory does not hold a batch: each is cut into {progress.pieces} pieces from here "
        f"on, the steps stay the same",
    )


def asked_to_stop(stop: Callable[[], bool], reports: bool) -> bool:
    """Whether to stop after this step; several processes agree on it when they report."""
    if processes.count() == 1:
        return stop()
    return reports and processes.any_of(stop())


def leave(state: State, plan: Plan, tally: Tally, reported: bool) -> None:
    """Save what was learned so far, with the sums of what was not told yet."""
    if plan.checkpoints is None or (reported and plan.saves(state.progress.step)):
        return
    if not reported:
        tally.read(state.progress.step, plan)  # a state that is broken must not be kept
        state.progress.since = tally.sums()
        state.progress.seconds += time.perf_counter() - tally.started
    state.save(plan.checkpoints)


def dice_seed(seed: int, step: int, number: int, process: int = 0) -> int:
    """Where the dice of a batch of a step begin: dropout follows from these numbers alone."""
    words = (seed, step, number, process) if process else (seed, step, number)
    state = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return int(state[0] >> 1)  # as PyTorch takes it, whatever the person's seed


def ready(model: nn.Module, machine: Machine) -> nn.Module:
    """The model as it is called: compiled, where that is asked for."""
    return torch.compile(model, dynamic=True) if machine.compile else model  # type: ignore[return-value]
