"""The loop: one for every job, a generator of what happened.

The caller owns it: the command line draws a bar, a notebook a curve, a test asserts. Numbers are
read from the device only when they are reported.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from glassformer import processes
from glassformer.errors import GlassformerError, is_out_of_memory
from glassformer.tasks.task import Task
from glassformer.training import memory
from glassformer.training.choice import choose_step
from glassformer.training.ddp import alone
from glassformer.training.gradients import settle
from glassformer.training.loader import Piece, Place, training_batches
from glassformer.training.meters import Meters
from glassformer.training.progress import Progress
from glassformer.training.schedules import lr_at
from glassformer.training.setup import Event, TrainSetup, Trouble
from glassformer.training.state import State
from glassformer.training.step import EagerStep
from glassformer.training.validation import save_and_validate, validate_saved
from glassformer.training.weights import weights_of


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
    progress, model = state.progress, state.model
    if progress.unvalidated:
        yield from validate_saved(state, model, task, setup, stop)
    if ends(progress, setup):
        model.eval()
        return
    step, note = choose_step(model, task, setup, progress)
    if note is not None:
        yield note
    batches = upcoming(task, setup, progress, step)
    meters = Meters(setup.machine.device, progress.since)
    try:
        while not ends(progress, setup):
            model.train()
            with meters.waiting():
                pieces = whole_batches(batches, setup.train.accumulate)
            failure = None
            meters.begin_step()
            try:
                losses = add_gradients(step, setup, progress.step, pieces)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                failure = str(error) or "out of memory"
            if failure is not None:  # outside of `except`, which would hold on to the memory
                yield cut_smaller(state, pieces, failure)
                batches.close()
                del step, pieces
                step, _ = choose_step(model, task, setup, progress)
                batches = upcoming(task, setup, progress, step)
                continue
            move(state, setup, losses, meters)
            meters.end_step()
            last = pieces[-1].place
            progress.epoch, progress.batch = last.next_epoch, last.next_batch
            reports = setup.reports(progress.step)
            if reports:
                report = meters.read(progress.step, setup, progress.pace)
                progress.seconds += time.perf_counter() - meters.started
                progress.since = []
                yield report
                yield from save_and_validate(state, model, task, setup, stop)
                memory.tidy(setup.machine.device)
                meters = Meters(setup.machine.device)
            if asked_to_stop(stop, reports):
                leave(state, setup, meters, reports)
                return
    finally:
        batches.close()
        model.eval()


def ends(progress: Progress, setup: TrainSetup) -> bool:
    """Whether no step is to be made now; a validation that was stopped comes first next time."""
    return progress.step >= setup.steps or progress.stopped or progress.unvalidated


def upcoming(
    task: Task, setup: TrainSetup, progress: Progress, step: EagerStep
) -> Generator[Piece, None, None]:
    """The batches from here on, in the shape that the step wants."""
    at = progress.epoch, progress.batch, progress.micro_batches
    return training_batches(task, setup, *at, step.shape)


def whole_batches(batches: Iterator[Piece], count: int) -> list[Piece]:
    """So many batches, with all micro-batches of each."""
    pieces = []
    while count:
        pieces.append(next(batches))
        count -= pieces[-1].place.ends
    return pieces


def learn(
    state: State, step: EagerStep, setup: TrainSetup, pieces: Sequence[Piece], meters: Meters
) -> None:
    """One step: gradients of all its batches, and a move."""
    move(state, setup, add_gradients(step, setup, state.progress.step, pieces), meters)


def add_gradients(
    step: EagerStep, setup: TrainSetup, done: int, pieces: Sequence[Piece]
) -> list[BatchLoss]:
    """Gradients of all batches of the next step, added up, and what each of them lost."""
    losses = []
    for number, piece in enumerate(pieces):
        seed = step_seed(setup.seed, done + 1, number, processes.rank())
        with alone(step.model, number + 1 < len(pieces)):
            loss = step(piece, seed)
        share = 0.0 if piece.place.idle else 1.0
        losses.append(BatchLoss(piece.place, share * loss.total, share * loss.count, piece.tokens))
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


def cut_smaller(state: State, pieces: Sequence[Piece], failure: str) -> Trouble:
    """Cut every batch into twice as many micro-batches, since they did not fit into memory.

    The step is made again: nothing has moved yet. Which rows it learns from stays the same.
    """
    state.optimisers.forget()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    progress = state.progress
    if processes.world_size() > 1 or max(len(piece.place.rows) for piece in pieces) == 1:
        one = "" if processes.world_size() > 1 else " even with one row at a time"
        raise GlassformerError(
            f"step {progress.step + 1:,} does not fit the memory of the device{one}: "
            f"{failure.splitlines()[0]}; use a smaller --size, shorter rows with task.max_length, "
            f"or smaller batches with data.batch_tokens and train.accumulate"
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
