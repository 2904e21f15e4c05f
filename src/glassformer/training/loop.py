"""The training loop: one for every job, a generator of events.

The caller drives it: the command line draws a progress bar, a notebook plots a curve, a test
asserts. Numbers are read from the device only when they are reported.
"""

import gc
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from glassformer import processes
from glassformer.errors import GlassformerError, is_out_of_memory
from glassformer.tasks.task import Loss, Task
from glassformer.training import memory
from glassformer.training.ddp import no_sync
from glassformer.training.gradients import normalise_and_clip
from glassformer.training.loader import BatchSource, TrainingBatch, training_batches
from glassformer.training.meters import Meters
from glassformer.training.progress import Progress
from glassformer.training.schedules import lr_at
from glassformer.training.setup import Event, Step, TrainSetup, Trouble
from glassformer.training.state import State
from glassformer.training.step import EagerStep
from glassformer.training.step_choice import choose_step
from glassformer.training.validation import save_and_validate, validate_saved
from glassformer.training.weights import weights_of

TRIM_EVERY = 100  # steps, about: it takes milliseconds


@dataclass(frozen=True, slots=True)
class BatchLoss:
    """What a batch adds to a step; zero for an idle batch.

    Attributes:
        count: What gradients are divided by.
        logged: The summed loss to report, and its own count.
    """

    source: BatchSource
    count: Tensor
    logged: Loss
    tokens: int


def train(
    state: State, task: Task, setup: TrainSetup, stop: Callable[[], bool] = lambda: False
) -> Generator[Event, None, None]:
    """Train a model in place, from wherever its state stands.

    Args:
        stop: Called after every step and every batch of a validation; once it returns True, the
            state is saved and the loop ends. An interrupted validation is repeated on resuming.
    """
    progress, model = state.progress, state.model
    if progress.unvalidated:
        yield from validate_saved(state, model, task, setup, stop)
    while not is_finished(progress, setup):
        step, note = choose_step(model, task, setup, progress)
        if note is not None:
            yield note
        overflow = yield from run_steps(state, task, setup, step, stop)
        del step  # and the memory of its graphs
        if overflow is None:
            break
        yield split_batches_further(state, overflow)
    model.eval()


@dataclass(frozen=True, slots=True)
class Overflow:
    """A step that did not fit in memory: the rows of its largest batch, and the error."""

    rows: int
    message: str


def run_steps(
    state: State, task: Task, setup: TrainSetup, step: EagerStep, stop: Callable[[], bool]
) -> Generator[Event, None, Overflow | None]:
    """Steps until training ends, is stopped, or a batch does not fit in memory."""
    progress, model, device = state.progress, state.model, setup.machine.device
    stream = batches_from(progress, task, setup, step)
    meters, closed = Meters(device, progress.since), list[Meters]()
    try:
        while not is_finished(progress, setup):
            if not model.training:
                model.train()
            with meters.waiting_for_data():
                batches = take_batches(stream, setup.train.accumulate)
            meters.begin_step()
            try:
                losses = accumulate_gradients(step, setup, progress.step, batches)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                rows = max(len(batch.source.rows) for batch in batches)
                overflow = Overflow(rows, str(error) or "out of memory")
                yield from reports_of(closed, progress, setup, task)
                pause(progress, meters)
                return overflow
            update_weights(state, setup, losses, meters)
            meters.end_step()
            last = batches[-1].source
            progress.epoch, progress.batch = last.next_epoch, last.next_batch
            yield from reports_of(closed, progress, setup, task)
            reports = setup.reports(progress.step)
            if reports:
                closed.append(meters.close(progress.step))
                meters = Meters(device, idle_since=meters.ended)
            if reports and (device.type != "cuda" or setup.saves(progress.step)):
                yield from reports_of(closed, progress, setup, task)
                due = save_and_validate(state, model, task, setup, stop)
                yield from timed_pause(due, setup) if setup.validates(progress.step) else due
                if progress.step % TRIM_EVERY < setup.train.log_every:
                    memory.trim_heap(device)
                meters = Meters(device)
            if reports and setup.length is not None and not is_finished(progress, setup):
                to_come = (setup.steps - progress.step) // setup.validate_every
                setup.length.revise(progress.step, to_come)
            if should_stop(stop, reports):
                yield from reports_of(closed, progress, setup, task)
                save_before_stopping(state, setup, meters, reports)
                break
        return None
    finally:
        stream.close()


def timed_pause(events: Iterator[Event], setup: TrainSetup) -> Iterator[Event]:
    """Pass on the events of a validation, and count its time where training ends by the clock."""
    started = time.monotonic()
    yield from events
    if setup.length is not None:
        setup.length.add_pause(time.monotonic() - started)


def reports_of(
    closed: list[Meters], progress: Progress, setup: TrainSetup, task: Task
) -> Iterator[Step]:
    """The reports of meters that were closed.

    On a GPU that is after the next step was launched, so that it never waits for a report.
    """
    while closed:
        meters = closed.pop()
        found = meters.read(setup, progress.lr_scale)
        progress.seconds += meters.spent
        progress.since = []
        yield found if task.objective_note is None else replace(found, loss_name="objective")


def pause(progress: Progress, meters: Meters) -> None:
    """Keep the running sums, which another start of the loop goes on from."""
    progress.since = meters.close(progress.step).sums()
    progress.seconds += meters.spent


def is_finished(progress: Progress, setup: TrainSetup) -> bool:
    """Whether there is no step to run now; an interrupted validation comes first on resuming."""
    return progress.step >= setup.steps or progress.stopped or progress.unvalidated


def batches_from(
    progress: Progress, task: Task, setup: TrainSetup, step: EagerStep
) -> Generator[TrainingBatch, None, None]:
    """The training batches from the current position on, in the shape of the step."""
    at = progress.epoch, progress.batch, progress.micro_batches
    return training_batches(task, setup, *at, step.shape)


def take_batches(stream: Iterator[TrainingBatch], count: int) -> list[TrainingBatch]:
    """The next `count` batches, with all micro-batches of each."""
    batches = []
    while count:
        batches.append(next(stream))
        count -= batches[-1].source.last
    return batches


def train_step(
    state: State,
    step: EagerStep,
    setup: TrainSetup,
    batches: Sequence[TrainingBatch],
    meters: Meters,
) -> None:
    """One optimiser step over all the given batches."""
    losses = accumulate_gradients(step, setup, state.progress.step, batches)
    update_weights(state, setup, losses, meters)


def accumulate_gradients(
    step: EagerStep, setup: TrainSetup, done: int, batches: Sequence[TrainingBatch]
) -> list[BatchLoss]:
    """Add up the gradients of all batches of the step after `done`; returns their losses."""
    losses = []
    for number, batch in enumerate(batches):
        seed = step_seed(setup.seed, done + 1, number, processes.rank())
        with no_sync(step.model, number + 1 < len(batches)):
            loss = step(batch, seed)
        if batch.source.idle:  # not multiplied by 0, which would make NaN of an infinite loss
            loss = loss.map(torch.zeros_like)
        losses.append(BatchLoss(batch.source, loss.count, loss.logged, batch.tokens))
    return losses


def update_weights(
    state: State, setup: TrainSetup, losses: list[BatchLoss], meters: Meters
) -> None:
    """Run the optimisers; gradients are divided once, by the count of all batches."""
    step = state.progress.step + 1
    count = torch.stack([loss.count for loss in losses]).sum()
    norm = normalise_and_clip(state.optimisers.names, count, setup.train.clip)
    lr = state.progress.lr_scale * lr_at(step, setup.steps, setup.train.optimiser)
    state.optimisers.step(lr)
    if state.average is not None:
        state.average.update(weights_of(state.model), step)
    state.progress.step = step
    for loss in losses:
        meters.add(step, loss.source, loss.logged.total, loss.logged.count, loss.tokens)
    meters.add_norm(step, losses[-1].source, norm)


def split_batches_further(state: State, overflow: Overflow) -> Trouble:
    """Double the number of micro-batches per batch, because a batch did not fit in memory.

    The step is then repeated on the same rows: no weight has changed yet.
    """
    state.optimisers.zero_grad()
    gc.collect()  # graphs of an earlier training in this process, which keep their memory
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    progress = state.progress
    if processes.world_size() > 1 or overflow.rows == 1:
        one = "" if processes.world_size() > 1 else ", even with one row at a time"
        raise GlassformerError(
            f"step {progress.step + 1:,} does not fit in device memory{one}: "
            f"{overflow.message.splitlines()[0]}; use a smaller --size, shorter rows with "
            f"task.max_length, or smaller batches with data.batch_tokens and train.accumulate"
        )
    progress.micro_batches *= 2
    return Trouble(
        progress.step + 1,
        f"a batch does not fit in memory: from here on each is split into "
        f"{progress.micro_batches} micro-batches; the steps stay the same",
    )


def should_stop(stop: Callable[[], bool], reports: bool) -> bool:
    """Whether to stop after this step; several processes agree on it at each report."""
    if processes.world_size() == 1:
        return stop()
    return reports and processes.any_of(stop())


def save_before_stopping(state: State, setup: TrainSetup, meters: Meters, reported: bool) -> None:
    """Save a checkpoint, with the running sums that were not reported yet."""
    if setup.checkpoints is None or (reported and setup.saves(state.progress.step)):
        return
    if not reported:
        meters.close(state.progress.step).read(setup)  # a diverged state must not be saved
        pause(state.progress, meters)
    state.save(setup.checkpoints)


def step_seed(seed: int, step: int, number: int, process: int = 0) -> int:
    """The random seed of one batch of a step: dropout depends on these numbers alone."""
    words = (seed, step, number, process) if process else (seed, step, number)
    state = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return int(state[0] >> 1)  # within the range that PyTorch accepts
