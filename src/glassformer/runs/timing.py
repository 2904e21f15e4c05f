"""The time budget of a command, and what a run costs by a few measured steps.

A budget is one clock, which starts with the command: reading, trials, trainings, baseline and
report ask it what is left. A budget of time or compute becomes a number of steps, which is written
down, so that a run stays reproducible.
"""

import itertools
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from glassformer import processes
from glassformer.config.run import Config
from glassformer.data.batches import ordered_batches
from glassformer.errors import GlassformerError
from glassformer.runs.display import clock
from glassformer.runs.folder import reporter_of
from glassformer.runs.prepare import FEWEST_VALIDATIONS, VALIDATION_SHARE
from glassformer.tasks.job import AnyTask
from glassformer.tasks.task import SomeBatch
from glassformer.training.cost import batch_cost
from glassformer.training.loader import TrainingBatch, one_epoch, sample_rows, training_batches
from glassformer.training.loop import train_step
from glassformer.training.machine import Machine
from glassformer.training.meters import Meters
from glassformer.training.setup import FEWEST_STEPS, VALIDATIONS, TrainSetup
from glassformer.training.state import State
from glassformer.training.step import EagerStep
from glassformer.training.step_choice import choose_step

TRIED, LONGEST_TRY = 20, 5.0  # steps, or seconds, whichever comes first
MOST_ANSWERED = 500  # validation rows that a task learns from after training
TIMED = 4  # batches of a split, or as many as LONGEST_TRY allows
TRY_SHARE = 0.02  # of the remaining time, at most, for each thing that is measured
SPARE = 0.05  # of the time budget, kept in reserve
BASELINE_SHARE = 0.1  # of the time left after reading, at most, for the baseline
COUNTED = 4  # batches whose FLOPs are counted
SHARES = (0.125, 0.25, 0.5)  # of the rows, and so of the steps, of a learning curve

Some = TypeVar("Some")


class Budget:
    """The time of a command, by one clock that starts with it; without a limit, all fits.

    Attributes:
        reserve: Seconds kept for what must come last: answers, baseline and report.
        costs: What this run costs, once that is measured; None without a limit.

    Args:
        seconds: None for no limit.
        started: When the command started, by `time.monotonic`; None for now.
    """

    def __init__(
        self, seconds: float | None = None, reserve: float = 0.0, *, started: float | None = None
    ) -> None:
        self.started = time.monotonic() if started is None else started
        self.seconds = math.inf if seconds is None else seconds
        self.reserve = reserve
        self.costs: Costs | None = None

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self.seconds < math.inf

    @property
    def spent(self) -> float:
        """Seconds since the command started."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds left, minus what is reserved for later work and a little to spare."""
        return (1 - SPARE) * self.seconds - self.spent - self.reserve if self.limited else math.inf

    @property
    def end(self) -> float:
        """When the time left is over, by `time.monotonic`."""
        return time.monotonic() + self.left

    def take_from_reserve(self, seconds: float) -> None:
        """Note that so much of what the reserve is for is done: the baseline, as a part."""
        if self.costs is not None:
            self.reserve = max(self.costs.report, self.reserve - seconds)

    def left_out(self, what: str, seconds: float) -> str:
        """Why something that takes so long is left out; empty if it fits into the time left."""
        if seconds <= self.left:
            return ""
        left = max(0.0, self.left)
        return (
            f"{what}: {clock(seconds)} would be needed, {clock(left)} are left; allow about "
            f"{clock((seconds - left) / (1 - SPARE))} more"
        )


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
    regular = until // setup.validate_every
    return regular + (until == setup.steps and not _divides(setup.validate_every, until))


def checkpoints(setup: TrainSetup, until: int) -> int:
    """Number of checkpoints up to a step: at each validation, and every `save_every` steps."""
    every, often = setup.validate_every, setup.train.save_every
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


def _divides(every: int, step: int) -> bool:
    return step % every == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Seconds of the parts of a run, measured on a few batches; the baseline is an estimate."""

    step: float
    warm_up: float
    validation: float
    checkpoint: float
    calibration: float
    report: float
    baseline: float

    @property
    def pause(self) -> float:
        """Seconds of a validation with its checkpoint."""
        return self.validation + self.checkpoint

    @property
    def end(self) -> float:
        """Seconds of what must follow the trainings."""
        return self.report + self.baseline

    def validations(self, seconds: float) -> int:
        """How many validations a training of so many seconds can afford."""
        affordable = int(VALIDATION_SHARE * seconds / max(self.pause, 1e-9))
        return min(VALIDATIONS, max(FEWEST_VALIDATIONS, affordable))

    def of_training(self, config: Config, steps: int) -> float:
        """Seconds of a training, with its validations."""
        every, seconds = config.train.validate_every, steps * self.step
        validations = steps / every if every else self.validations(seconds)
        return self.warm_up + self.calibration + seconds + validations * self.pause


def measured_costs(config: Config, job: AnyTask, machine: Machine, budget: Budget) -> Costs:
    """The costs of a run, which take a small share of the time left to measure."""
    setup = TrainSetup(replace(config.train, steps=TRIED), config.data, machine, config.seed)
    left = budget.left
    longest = min(LONGEST_TRY, max(0.0, TRY_SHARE * left))
    reporter = reporter_of(job)
    estimate = reporter.baseline_seconds() if config.baseline else 0.0
    cheapest = reporter.cheapest_seconds() if config.baseline else 0.0
    pace = step_pace(job, setup, longest, beside=job.folder)
    costs = Costs(
        step=pace.step,
        warm_up=pace.warm_up,
        validation=validation_seconds(job, setup, longest=longest),
        checkpoint=pace.checkpoint,
        calibration=calibration_seconds(job, setup, longest=longest),
        report=report_seconds(job, setup, longest=longest),
        baseline=max(cheapest, min(estimate, max(0.0, BASELINE_SHARE * left))),
    )
    steps = steps_in(config, costs, budget) if machine.device.type == "cuda" else 0
    if steps > TRIED and machine.compile is None:
        # So many steps may be worth compiling.
        longer = replace(setup, train=replace(setup.train, steps=steps))
        pace = step_pace(job, longer, longest)
        costs = replace(costs, step=pace.step, warm_up=pace.warm_up)
    measured = json.loads(processes.broadcast(json.dumps(asdict(costs))))
    return Costs(**measured)


def steps_in(config: Config, costs: Costs, budget: Budget, times: float = 1.0) -> int:
    """How many steps fit into the time left, including validations; 0 if none does.

    Args:
        times: Total work relative to one training, as for a learning curve.
    """
    left = budget.left - times * (costs.calibration + costs.warm_up)
    every = config.train.validate_every
    if every is None:
        left -= times * costs.validations(left / times) * costs.pause
    step = costs.step + (costs.pause / every if every else 0.0)
    return max(0, int(left / (times * step)))


def fitting_trainings(
    config: Config, costs: Costs, budget: Budget
) -> tuple[Config, int, list[str]]:
    """The trainings that fit into a budget, the steps of the first, and a line on each left out.

    A second training or a learning curve is left out where the first training would have too few
    steps for it; the first alone may have as few as fit.
    """
    lines: list[str] = []
    while (times := trainings(config)) > 1 and steps_in(
        config, costs, budget, times
    ) < FEWEST_STEPS:
        needed = times * costs.of_training(config, FEWEST_STEPS)
        if config.train.refit:
            what, config = "no second training on all rows", without_refit(config)
        else:
            what, config = "no learning curve", replace(config, curve=False)
        lines.append(budget.left_out(what, needed))
    return config, steps_in(config, costs, budget, trainings(config)), lines


def without_refit(config: Config) -> Config:
    """The settings without a second training; n-grams, which take little, learn all rows still."""
    return replace(config, train=replace(config.train, refit=None))


def too_short(config: Config, costs: Costs, budget: Budget) -> TooLittleTimeError:
    """The error for a budget without time for a step, which says how much would do."""
    training = trainings(config) * costs.of_training(config, FEWEST_STEPS)
    enough = rounded_up((budget.spent + training + costs.end) / (1 - SPARE))
    return TooLittleTimeError(
        f"--time {clock(budget.seconds)} is too short: {clock(budget.spent)} are gone, validation "
        f"and the report take {clock(costs.calibration + costs.end)}, and a step "
        f"{costs.step:.2g} s; about --time {enough} is enough for {FEWEST_STEPS} steps, or use "
        f"fewer rows or a smaller --size"
    )


def rounded_up(seconds: float) -> str:
    """A time budget that is at least so long, as a person would write it.

    >>> rounded_up(31.0), rounded_up(100.0), rounded_up(1000.0), rounded_up(9000.0)
    ('40s', '2m', '17m', '2h30m')
    """
    if seconds <= 90:
        return f"{10 * math.ceil(seconds / 10)}s"
    minutes = math.ceil(seconds / 60)
    if minutes <= 90:
        return f"{minutes}m"
    minutes = 10 * math.ceil(minutes / 10)
    return f"{minutes // 60}h{minutes % 60}m" if minutes % 60 else f"{minutes // 60}h"


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


def step_pace(
    job: AnyTask, setup: TrainSetup, longest: float = LONGEST_TRY, beside: Path | None = None
) -> Pace:
    """The warm-up and the mean time of a step, measured on a throwaway model.

    Args:
        beside: Where a checkpoint is written to measure that, too; None measures none.
    """
    torch.manual_seed(setup.seed)
    state = State(job.build().to(setup.machine.device), setup.train)
    step, warm_up = warmed_up(job, setup, state)
    tried = mean_after_first(list(tried_steps(job, setup, state, step, longest=longest)))
    saving = checkpoint_seconds(state, beside) if beside is not None else 0.0
    return Pace(tried, 0.0, saving, warm_up)


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


def validation_seconds(
    job: AnyTask,
    setup: TrainSetup,
    model: nn.Module | None = None,
    longest: float = LONGEST_TRY,
) -> float:
    """The time of one validation, from a few of its batches."""
    score, rows = job.for_timing().score, setup.train.validate_rows
    return _pass_seconds(job, setup, model, "valid", score, longest, rows)


def calibration_seconds(
    job: AnyTask,
    setup: TrainSetup,
    model: nn.Module | None = None,
    longest: float = LONGEST_TRY,
) -> float:
    """The time of the predictions for validation rows that calibrate the model, or the task."""
    answers, seconds = job.for_timing().answers, 0.0
    if reporter_of(job).calibrates:
        seconds += _pass_seconds(job, setup, model, "valid", answers, longest)
    if learns_from_answers(job):
        seconds += _pass_seconds(job, setup, model, "valid", answers, longest, MOST_ANSWERED)
    return seconds


def learns_from_answers(job: AnyTask) -> bool:
    """Whether the task learns from its answers to some validation rows, after training."""
    return 0 < job.fewest_answers <= len(job.lengths("valid"))


def report_seconds(
    job: AnyTask,
    setup: TrainSetup,
    model: nn.Module | None = None,
    longest: float = LONGEST_TRY,
) -> float:
    """The time of the predictions for the report, with the configured search.

    Scoring is not included, as it takes far longer on the output of an untrained model.
    """
    split = "test" if len(job.lengths("test")) else "valid"
    return _pass_seconds(job, setup, model, split, job.for_timing().answers, longest)


def _pass_seconds(
    job: AnyTask,
    setup: TrainSetup,
    model: nn.Module | None,
    split: str,
    evaluate: Callable[[nn.Module, Iterable[SomeBatch]], object],
    longest: float,
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
        if spent >= longest:
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
