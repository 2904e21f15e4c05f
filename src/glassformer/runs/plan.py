"""The cost of a training run before it starts: parameters, FLOPs, memory, disk and time.

Data are read as for training, into a temporary folder; the model is built and runs a few steps. A
batch that might not fit is never run: the need of all its rows is extrapolated from a few.
"""

import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from glassformer import processes
from glassformer.config.run import Config
from glassformer.data.batches import RowNumbers
from glassformer.errors import GlassformerError, worded
from glassformer.runs.arguments import taking, training_arguments
from glassformer.runs.display import Display, clock
from glassformer.runs.estimate import Disk, Estimate, Memory, Work, advice
from glassformer.runs.fit import costs_in, initial_state
from glassformer.runs.folder import reporter_of
from glassformer.runs.limits import scratch_folder, within_limits
from glassformer.runs.model_size import TooLargeError
from glassformer.runs.new_folder import free_name, refuse_existing
from glassformer.runs.prepare import Prepared, companions_of, prepare, resolve_validation
from glassformer.runs.pretraining import TIMES, TRIAL, objection_to
from glassformer.runs.request import TrainRequest
from glassformer.runs.timing import (
    COUNTED,
    Budget,
    Pace,
    calibration_seconds,
    checkpoint_seconds,
    fitting_trainings,
    mean_after_first,
    report_seconds,
    steps_of_flops,
    too_short,
    trainings,
    tried_steps,
    validation_seconds,
    warmed_up,
)
from glassformer.tasks.job import AnyTask
from glassformer.tasks.task import SomeBatch
from glassformer.training import memory
from glassformer.training.cost import BatchCost, Part, batch_cost, parts_of, state_bytes
from glassformer.training.loader import one_epoch
from glassformer.training.machine import choose_machine, training_machine
from glassformer.training.setup import TrainSetup

FEW_ROWS = 1 / 8  # of the widest batch, run first
START_AND_END = 1.5  # times the imports: the interpreter starts before them and ends slowly


@taking(training_arguments)
def plan(request: TrainRequest, display: Display) -> Estimate:
    """Estimate the cost of training: `glassformer.plan("classify", "reviews.csv").time`."""
    return estimate_training(request, display)


def estimate_training(
    request: TrainRequest, display: Display, *, started: float | None = None
) -> Estimate:
    """Estimate the cost of the requested training; leaves no folder behind.

    Args:
        started: As for `run_training`.
    """
    if processes.world_size() > 1:
        raise GlassformerError("plan runs in one process; drop torchrun")
    target = request.run or free_name(request.name)
    refuse_existing(target)
    config = request.resolve(provisional=True)
    budget = Budget(config.train.time, started=started)
    began = time.monotonic()
    starting = 0.0 if started is None else START_AND_END * (began - started)
    with scratch_folder() as scratch:
        inside = replace(request, run=scratch / target.name)
        try:
            run = prepare(inside, config, display, extends=False)
        except TooLargeError as error:
            return estimate_too_large(config, error)
        before = {"starting": starting, "reading": time.monotonic() - began}
        with within_limits(target), display.waiting("running a few steps"):
            return TrialRun(run, display, budget).estimate(target, before)


def estimate_too_large(config: Config, error: TooLargeError) -> Estimate:
    """The estimate for a model that is too large to build here."""
    needs = error.needs
    return Estimate(
        job=config.job,
        machine=choose_machine(config.machine).described,
        parts={"model": Part(needs.weights // torch.float32.itemsize, 0)},
        work=None,
        memory=Memory(before=0, activations=0, measured=False, room=error.room, **asdict(needs)),
        disk=None,
        notes=(f"{error}.",),
    )


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The pace of a few steps, and the memory peak after each."""

    pace: Pace
    peaks: Mapping[int, int]


class TrialRun:
    """Runs a few steps of a model that is then thrown away."""

    def __init__(self, run: Prepared, display: Display, budget: Budget) -> None:
        config, self.folder, self.task = run.config, run.folder, run.task
        machine = training_machine(config.machine)
        self.device, self.reporter = machine.device, reporter_of(run.task)
        self.times, self.lines = trainings(config), list[str]()
        steps = config.train.steps
        if steps is None and config.train.flops is not None:
            steps = steps_of_flops(config, self.task, machine)
        elif steps is None:
            costs = costs_in(run, machine, display, budget)
            config, steps, lines = fitting_trainings(config, costs, budget)
            if not steps:
                raise too_short(config, costs, budget)
            self.lines, self.times = lines, trainings(config)
        config = replace(config, train=replace(config.train, steps=steps))
        self.config: Config = resolve_validation(config, self.task)
        keeps = self.folder.checkpoints
        self.setup = TrainSetup(self.config.train, config.data, machine, config.seed, keeps)
        held = memory.in_use(self.device) or 0
        on_cpu = state_bytes(run.model, config.train).weights if self.device.type == "cpu" else 0
        self.before = max(0, held - on_cpu)  # without the model, which is already built
        self.state = initial_state(run.model.to(self.device), self.setup, display)
        self.rows = one_epoch(self.task, self.setup, 0)

    def estimate(self, target: Path, before: Mapping[str, float]) -> Estimate:
        """The complete estimate.

        Args:
            before: Seconds of what comes before the first step.
        """
        model, setup = self.state.model, self.setup
        widest = widest_of(self.rows, self.task)
        few = widest[: max(1, round(FEW_ROWS * len(widest)))]
        sample = batch_cost(model, self.task, self.batch(few), setup)
        needs = self.memory(
            activations=sample.activations * len(widest) // len(few), measured=False
        )
        tried, costs = None, [sample]
        if needs.fits is not False:
            costs = [self.cost(rows) for rows in self.rows[:COUNTED]]
            tried = self.try_steps(self.batch(widest))
            needs = self.memory_of(tried, needs)
        work = self.work(costs, tried)
        seconds = {**before, **self.seconds(tried)} if tried else {}
        disk = self.disk(target, needs)
        data, train = self.config.data, self.config.train
        notes = advice(needs, disk, data.batch_tokens, train.accumulate)
        return Estimate(
            job=self.config.job,
            machine=setup.machine.described,
            parts=parts_of(model),
            work=work,
            memory=needs,
            disk=disk,
            seconds=seconds,
            notes=tuple(map(worded, (*notes, *self.caveats(seconds)))),
        )

    def batch(self, rows: RowNumbers) -> SomeBatch:
        """These training rows as a batch of the first epoch."""
        batch: SomeBatch = self.task.batch("train", rows, 0)
        return batch.to(self.device)

    def cost(self, rows: RowNumbers) -> BatchCost:
        """The cost of a batch of these rows."""
        return batch_cost(self.state.model, self.task, self.batch(rows), self.setup)

    def try_steps(self, widest: SomeBatch) -> TrialResult:
        """Run a few steps, the widest batch first; then a validation and a checkpoint."""
        seconds: list[float] = []
        peaks: dict[int, int] = {}
        memory.reset_peak(self.device)
        step, warm_up = warmed_up(self.task, self.setup, self.state)
        for elapsed in tried_steps(self.task, self.setup, self.state, step, widest):
            seconds.append(elapsed)
            if (peak := memory.peak(self.device)) is not None:
                peaks[len(seconds)] = peak
        validation = validation_seconds(self.task, self.setup, self.state.model)
        checkpoint = checkpoint_seconds(self.state, self.folder.path)
        pace = Pace(mean_after_first(seconds), validation, checkpoint, warm_up)
        return TrialResult(pace, peaks)

    def memory(self, activations: int, *, measured: bool) -> Memory:
        """Peak memory for this size of activations."""
        fixed = state_bytes(self.state.model, self.config.train)
        sizes = asdict(fixed) | {"before": self.before, "activations": activations}
        return Memory(**sizes, measured=measured, room=memory.capacity(self.device))

    def memory_of(self, tried: TrialResult, counted: Memory) -> Memory:
        """Peak memory as measured; as counted where it cannot be measured."""
        if not tried.peaks:
            return counted
        fixed = counted.total - counted.activations
        peak = memory.projected_peak(self.device, tried.peaks, fixed, self.setup.steps)
        return self.memory(max(0, peak - fixed), measured=True)

    def work(self, costs: list[BatchCost], tried: TrialResult | None) -> Work:
        """Steps, tokens and FLOPs, from the batches of the first epoch."""
        tokens, accumulate = int(self.task.lengths("train").sum()), self.config.train.accumulate
        a_step = accumulate * tokens / len(self.rows)
        a_token = sum(cost.flops for cost in costs) / sum(cost.tokens for cost in costs)
        return Work(
            steps=self.setup.steps,
            epochs=self.setup.steps * accumulate / len(self.rows),
            tokens_a_step=a_step,
            tokens_an_epoch=tokens,
            flops=a_token * a_step,
            speed=a_token * a_step / tried.pace.step if tried else None,
        )

    def seconds(self, tried: TrialResult) -> dict[str, float]:
        """Seconds by activity, from the first step on."""
        pace, steps = tried.pace, self.setup.steps
        baseline = self.reporter.timed_baseline_seconds() if self.config.baseline else 0.0
        tested = report_seconds(self.task, self.setup, self.state.model)
        calibrating = calibration_seconds(self.task, self.setup, self.state.model)
        return {
            "learning": self.times * (pace.warm_up + pace.step * steps),
            "validating": self.times * pace.validating(self.setup, 0, steps),
            "saving": self.times * pace.saving(self.setup, 0, steps),
            "reporting": self.times * calibrating + tested + baseline,
        }

    def disk(self, target: Path, needs: Memory) -> Disk:
        """Disk space for the data, the checkpoints kept and being written, and the model."""
        files = (path for path in self.folder.path.rglob("*") if path.is_file())
        checkpoint = needs.weights + needs.optimiser + needs.averages
        total = sum(path.stat().st_size for path in files)
        total += (self.setup.kept_checkpoints + 2) * checkpoint + needs.weights
        there = next(path for path in target.absolute().parents if path.exists())
        return Disk(total=total, room=shutil.disk_usage(there).free)

    def caveats(self, seconds: Mapping[str, float]) -> list[str]:
        """What the numbers do not include."""
        notes, config = [f"{line[0].upper()}{line[1:]}." for line in self.lines], self.config
        learning = sum(seconds.get(name, 0.0) for name in ("learning", "validating", "saving"))
        if config.train.time is None and config.pretrain == "yes":
            notes.append(
                f"Not included: pretraining, about {TIMES:.0f} times the work"
                f"{of_time(TIMES * learning)}."
            )
        if config.train.time is None and self.needs_trial:
            notes.append(
                f"Not included: a trial of whether pretraining helps"
                f"{of_time(4 * TRIAL * learning)}, and pretraining if it does"
                f"{of_time(TIMES * learning)}; --no-pretrain skips both."
            )
        if runs := companions_of(config):
            notes.append(f"Not included: training rows made with {', '.join(runs.values())}.")
        if config.train.patience is not None:
            notes.append(
                f"It may finish sooner: it stops after {config.train.patience} validations "
                f"without improvement."
            )
        notes += self.reporter.plan_notes()
        if config.baseline and self.reporter.baseline_seconds():
            notes.append("Memory is for training; the baseline at the end needs its own.")
        return notes

    @property
    def needs_trial(self) -> bool:
        """Whether a trial will decide about pretraining."""
        return self.config.pretrain == "auto" and not objection_to(self.config, self.task)


def widest_of(batches: list[RowNumbers], task: AnyTask) -> RowNumbers:
    """The rows of the batch with the most tokens, including padding."""
    lengths = task.lengths("train")

    def tokens(rows: RowNumbers) -> int:
        return int(len(rows) * lengths[rows].max() if task.padded else lengths[rows].sum())

    return batches[int(np.argmax([tokens(rows) for rows in batches]))]


def of_time(seconds: float) -> str:
    """A time in brackets; empty if unknown."""
    return f" (about {clock(seconds)})" if seconds else ""
