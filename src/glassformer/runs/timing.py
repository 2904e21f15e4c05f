"""Training time from a few measured steps, or the number of steps in a budget.

A budget of time or compute becomes a number of steps, so that a run stays reproducible.
"""

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from glassformer import processes
from glassformer.config.run import Config
from glassformer.data.batches import ordered_batches
from glassformer.errors import GlassformerError
from glassformer.runs.folder import reporter_of
from glassformer.runs.prepare import VALIDATION_SHARE
from glassformer.tasks.job import AnyTask
from glassformer.tasks.task import SomeBatch
from glassformer.training.cost import batch_cost
from glassformer.training.loader import TrainingBatch, one_epoch, sample_rows, training_batches
from glassformer.training.loop import train_step
from glassformer.training.machine import Machine
from glassformer.training.meters import Meters
from glassformer.training.setup import VALIDATIONS, TrainSetup
from glassformer.training.state import State
from glassformer.training.step import EagerStep
from glassformer.training.step_choice import choose_step

TRIED, LONGEST_TRY = 20, 5.0  # steps, or seconds, whichever comes first
TIMED = 4  # batches of a split, or as many as LONGEST_TRY allows
TRY_SHARE = 0.1  # of the remaining time, at most, for measuring
SPARE = 0.05  # of the time budget, kept in reserve
COUNTED = 4  # batches whose FLOPs are counted
SHARES = (0.125, 0.25, 0.5)  # of the rows, and so of the steps, of a learning curve

Some = TypeVar("Some")


class Clock:
    """Counts down a number of seconds, from now or from when work started."""

    def __init__(
        self, seconds: float, reserve: float = 0.0, *, started: float | None = None
    ) -> None:
        self.deadline = (time.monotonic() if started is None else started) + seconds
        self.reserve, self.seconds = reserve, seconds

    @property
    def left(self) -> float:
        """Seconds left, minus what is reserved for later work."""
        return self.deadline - time.monotonic() - self.reserve - SPARE * self.seconds


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds per step, per validation, and per checkpoint, and of the warm-up before all steps."""

    step: float
    validation: float
    checkpoint: float
    warm_up: float = 0.0

    def validating(self, setup: TrainSetup, done: int, until: int) -> float:
        """Seconds of the validations between steps `done` and `until`."""
        return self.validation * (validations(setup, until) - validations(setup, done))

    def saving(self, setup: TrainSetup, done: int, until: int) -> float:
        """Seconds of the checkpoints between steps `done` and `until`."""
        return self.checkpoint * (checkpoints(setup, until) - checkpoints(setup, done))


def validations(setup: TrainSetup, until: int) -> int:
    """Number of validations up to a step: at regular intervals, and at the last step."""
    regular = until // validates_every(setup)
    return regular + (until == setup.steps and not _divides(validates_every(setup), until))


def checkpoints(setup: TrainSetup, until: int) -> int:
    """Number of checkpoints up to a step: at each validation, and every `save_every` steps."""
    every, often = validates_every(setup), setup.train.save_every
    if often is None:
        return validations(setup, until)
    both = until // often + until // every - until // math.lcm(often, every)
    last = until == setup.steps and not (_divides(often, until) or _divides(every, until))
    return both + last


def trainings(config: Config) -> float:
    """The work of a run, relative to that of one training; a refit has the validation rows, too."""
    valid, test = config.data.valid_share, config.data.test_share
    refit = (1.0 - test) / (1.0 - test - valid) if config.train.refit else 0.0
    return 1.0 + (sum(SHARES) if config.curve else 0.0) + refit


class TooLittleTimeError(GlassformerError):
    """A time budget in which not even one step fits."""


def validates_every(setup: TrainSetup) -> int:
    """Steps between two validations."""
    return setup.train.validate_every or max(1, -(-setup.steps // VALIDATIONS))


def _divides(every: int, step: int) -> bool:
    return step % every == 0


def steps_in(
    config: Config, job: AnyTask, machine: Machine, clock: Clock, times: float = 1.0
) -> int:
    """How many steps fit into the time left, including validations.

    Args:
        times: Total work relative to one training, as for a learning curve.
    """
    setup = TrainSetup(replace(config.train, steps=TRIED), config.data, machine, config.seed)
    longest = min(LONGEST_TRY, TRY_SHARE * clock.left)
    pace = step_pace(job, setup, longest)
    validation, report = validation_seconds(job, setup), report_seconds(job, setup)
    calibrating = calibration_seconds(job, setup)
    every = config.train.validate_every

    def fitting_steps(pace: Pace) -> int:
        left = clock.left - times * (calibrating + pace.warm_up) - report
        if every is None:
            left -= min(times * VALIDATIONS * validation, VALIDATION_SHARE * left)
        step = pace.step + (validation / every if every else 0.0)
        return max(0, int(left / (times * step)))

    steps = fitting_steps(pace)
    if steps > TRIED and machine.device.type == "cuda" and machine.compile is None:
        # So many steps may be worth compiling.
        longer = replace(setup, train=replace(setup.train, steps=steps))
        steps = fitting_steps(step_pace(job, longer, longest))
    if not steps:
        raise TooLittleTimeError(
            f"--time {clock.seconds:.0f}s is too short: reading, validation and the report leave "
            f"no time for a step; allow more time, use fewer rows or a smaller --size"
        )
    return steps


def steps_of_flops(config: Config, job: AnyTask, machine: Machine) -> int:
    """How many steps a budget of compute pays for, by a few batches of the first epoch."""
    setup = TrainSetup(replace(config.train, steps=1), config.data, machine, config.seed)
    step = flops_of_step(job, setup, job.build().to(machine.device))
    budget = config.train.flops or 0.0
    if budget < step:
        raise GlassformerError(
            f"--flops {budget:.3g} is too little for one step, which takes {step:.3g}; allow more, "
            f"or use a smaller --size"
        )
    return int(budget / step)


def flops_of_step(job: AnyTask, setup: TrainSetup, model: nn.Module) -> float:
    """The FLOPs of a mean step, forward and backward."""
    rows, device = one_epoch(job, setup, 0), setup.machine.device
    costs = [
        batch_cost(model, job, job.batch("train", some, 0).to(device), setup)
        for some in rows[:COUNTED]
    ]
    a_token = sum(cost.flops for cost in costs) / sum(cost.tokens for cost in costs)
    return a_token * setup.train.accumulate * int(job.lengths("train").sum()) / len(rows)


def step_pace(job: AnyTask, setup: TrainSetup, longest: float = LONGEST_TRY) -> Pace:
    """The warm-up and the mean time of a step, measured on a throwaway model."""
    torch.manual_seed(setup.seed)
    state = State(job.build().to(setup.machine.device), setup.train)
    step, warm_up = warmed_up(job, setup, state)
    tried = tried_steps(job, setup, state, step, longest=longest)
    return Pace(mean_after_first(list(tried)), 0.0, 0.0, warm_up)


def warmed_up(job: AnyTask, setup: TrainSetup, state: State) -> tuple[EagerStep, float]:
    """How the steps of a run are executed, and the seconds until the first can start."""
    started = time.perf_counter()
    step, _ = choose_step(state.model, job, setup, state.progress)
    return step, time.perf_counter() - started


def mean_after_first(seconds: list[float]) -> float:
    """The mean without the first step, which is slow, unless it is the only one."""
    counted = seconds[1:] or seconds
    return sum(counted) / len(counted)


def tried_steps(
    job: AnyTask,
    setup: TrainSetup,
    state: State,
    step: EagerStep,
    first: SomeBatch | None = None,
    longest: float = LONGEST_TRY,
) -> Iterator[float]:
    """Run a few steps and yield the seconds of each; all processes run equally many.

    Args:
        first: A batch to start with, before those of the first epoch.
        longest: Seconds after which no further step is run.
    """
    meters = Meters(setup.machine.device)
    batches = training_batches(job, setup, 0, 0, shape=step.shape)
    spent, accumulate = 0.0, setup.train.accumulate
    try:
        for number in range(TRIED):
            before = time.perf_counter()
            chosen = list(itertools.islice(batches, accumulate))
            if number == 0 and first is not None:
                source = chosen[0].source
                chosen = [TrainingBatch(source, first, first.tokens, fixed_shape=False)]
                chosen *= accumulate
            train_step(state, step, setup, chosen, meters)
            meters.total.item()  # waits for a GPU
            spent += time.perf_counter() - before
            yield time.perf_counter() - before
            if processes.broadcast("enough" if spent >= longest else ""):
                return
    finally:
        batches.close()


def validation_seconds(job: AnyTask, setup: TrainSetup, model: nn.Module | None = None) -> float:
    """The time of one validation, from a few of its batches."""
    score, rows = job.for_timing().score, setup.train.validate_rows
    return _pass_seconds(job, setup, model, "valid", score, rows)


def calibration_seconds(job: AnyTask, setup: TrainSetup, model: nn.Module | None = None) -> float:
    """The time of the predictions for the whole validation split, if they are calibrated on it."""
    if not reporter_of(job).calibrates:
        return 0.0
    return _pass_seconds(job, setup, model, "valid", job.for_timing().answers)


def report_seconds(job: AnyTask, setup: TrainSetup, model: nn.Module | None = None) -> float:
    """The time of the predictions for the report, with the configured search.

    Scoring is not included, as it takes far longer on the output of an untrained model.
    """
    split = "test" if len(job.lengths("test")) else "valid"
    return _pass_seconds(job, setup, model, split, job.for_timing().answers)


def _pass_seconds(
    job: AnyTask,
    setup: TrainSetup,
    model: nn.Module | None,
    split: str,
    evaluate: Callable[[nn.Module, Iterable[SomeBatch]], object],
    max_rows: int | None = None,
) -> float:
    """The time of evaluating a split, or a sample of it, from batches of all lengths."""
    lengths = job.lengths(split)
    if not len(lengths):
        return 0.0
    sample = sample_rows(len(lengths), max_rows)
    lengths = lengths[sample]
    model = (model or job.build()).to(setup.machine.device).eval()
    batches = ordered_batches(lengths, setup.data.batch_tokens, padded=job.padded)
    tokens, spent = 0, 0.0
    for rows in spread(batches, TIMED):
        batch: SomeBatch = job.batch(split, sample[rows], None).to(setup.machine.device)
        started = time.perf_counter()
        with torch.no_grad(), setup.machine.autocast():
            evaluate(model, [batch])
        spent += time.perf_counter() - started
        tokens += int(lengths[rows].sum())
        if spent >= LONGEST_TRY:
            break
    return spent * int(lengths.sum()) / tokens


def spread(batches: Sequence[Some], count: int) -> list[Some]:
    """The middle item of each of `count` equal sections, the most central first.

    >>> spread(range(100), 4), spread(range(3), 4)
    ([37, 62, 12, 87], [1, 0, 2])
    """
    size = len(batches)
    places = {(2 * n + 1) * size // (2 * count) for n in range(count)}
    return [batches[place] for place in sorted(places, key=lambda n: (abs(2 * n + 1 - size), n))]


def checkpoint_seconds(state: State, beside: Path) -> float:
    """The time of writing a checkpoint next to this folder."""
    with tempfile.TemporaryDirectory(prefix=".glassformer-", dir=beside) as scratch:
        started = time.perf_counter()
        state.save(Path(scratch) / "checkpoints")
        return time.perf_counter() - started
