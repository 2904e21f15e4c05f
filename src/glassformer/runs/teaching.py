"""Training a run, from the start or from where it stopped, to the report at the end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from glassformer import processes
from glassformer.config.run import Config
from glassformer.models.stacks import recompute_activations
from glassformer.runs.checksums import drop_checksums
from glassformer.runs.display import Display, clock
from glassformer.runs.folder import RunFolder, reporter_of
from glassformer.runs.foresight.prediction import Watch
from glassformer.runs.foresight.timing import SHARES, Clock, steps_in
from glassformer.runs.log import Log
from glassformer.runs.parts import fresh_model
from glassformer.runs.stopping import stopping
from glassformer.tasks.job import JobTask
from glassformer.training.averages import mean
from glassformer.training.checkpoints import checkpoint_weights, whole_best
from glassformer.training.feeding import part_batches
from glassformer.training.loop import validate
from glassformer.training.machine import Machine, choose_machine, training_machine
from glassformer.training.persistence import train_through
from glassformer.training.plan import Event, Plan
from glassformer.training.shards import is_sharded, shard, whole
from glassformer.training.state import State
from glassformer.training.weights import (
    Weights,
    put_weights,
    read_tensors,
    weights_of,
    write_tensors,
)


@dataclass(frozen=True, slots=True)
class Taught:
    """A trained run, in memory: `steps` were done, the weights are those of step `kept`."""

    config: Config
    job: JobTask[Any, Any, Any]
    model: nn.Module
    plan: Plan
    seconds: float
    steps: int
    kept: str


def teach(folder: RunFolder, display: Display, deadline: Clock | None = None) -> Taught:
    """Train a run to its end and keep the best model; `deadline` is for a run given by time."""
    config = folder.config()
    machine = training_machine(config.machine)
    job = folder.job(config, folder.data)
    config = settle_time(folder, config, job, machine, display, deadline)
    plan = Plan(config.train, config.data, machine, config.seed, folder.checkpoints)
    model = begin(job, config, folder).to(machine.device)
    size = sum(p.numel() for p in model.parameters())
    state = begin_state(model, plan, display)
    display.say(f"{config.job}: {size:,} parameters, {plan.steps:,} steps on {machine.described}")
    started = time.perf_counter()
    with stopping(display.say) as stop, logged(folder, state.progress.step) as log:
        beginning = partial(beginning_of, job, config, folder)
        watch = Watch(state, job, plan)
        events = watch.follow(train_through(state, job, plan, beginning, stop))
        for event in display.follow(events, plan.steps, config.job):
            log(event)
    progress = state.progress
    if progress.stopped:
        display.say(
            f"stopped at step {progress.step:,}: not better for {progress.stale} validations"
        )
    assert plan.checkpoints is not None
    progress.best, lost = whole_best(plan.checkpoints, progress)
    for damage in lost:
        display.say(f"{damage}; the next best checkpoint is used")
    if processes.is_first():
        drop_checksums(folder.path)
    kept = keep_best(state, job, plan, folder)
    display.say(f"trained for {clock(time.perf_counter() - started)}; kept step {kept}")
    watch.tell(folder, display)
    model = whole_model(state.model, job, config, folder)
    reporter = reporter_of(job)
    if reporter.calibrates and len(job.lengths("valid")) and processes.is_first():
        reporter.calibrate(answers_on(job, model, plan, "valid"))
    processes.wait()
    return Taught(config, job, model, plan, progress.seconds, progress.step, kept)


def settle_time(
    folder: RunFolder,
    config: Config,
    job: JobTask[Any, Any, Any],
    machine: Machine,
    display: Display,
    deadline: Clock | None,
) -> Config:
    """A time as a number of steps, written down; several processes go by the first one's clock."""
    if config.train.steps is not None:
        return config
    given = deadline or Clock(config.train.time or 0.0)
    times = 1 + sum(SHARES) if config.curve else 1.0
    with display.waiting("timing a few steps"):
        steps = int(processes.told(str(steps_in(config, job, machine, given, times))))
    config = replace(config, train=replace(config.train, steps=steps))
    if processes.is_first():
        folder.write_config(config)
    display.say(f"{clock(given.seconds)} are enough for {steps:,} steps")
    return config


def begin_state(model: nn.Module, plan: Plan, display: Display) -> State:
    """The state before the first step, or where an interrupted run stopped."""
    if plan.train.recompute:
        recompute_activations(model)
    if plan.train.shard and processes.is_launched():  # one process holds all of it anyway
        shard(model, plan.machine)
    state = State(model, plan.train)
    assert plan.checkpoints is not None
    if state.load(plan.checkpoints):
        for damage in state.damaged:
            display.say(f"{damage}; the next best checkpoint is used")
        display.say(f"goes on from step {state.progress.step:,} of {plan.steps:,}")
    return state


@contextmanager
def logged(folder: RunFolder, step: int) -> Iterator[Callable[[Event], None]]:
    """A place to note events, from a step on; only the first process writes them down."""
    if not processes.is_first():
        yield lambda event: None
        return
    log = Log(folder.metrics, folder.path / "board", step)
    try:
        yield log.write
    finally:
        log.close()


def answers_on(job: JobTask[Any, Any, Any], model: nn.Module, plan: Plan, part: str) -> Any:
    """What a model says about all rows of a part."""
    model.eval()
    with torch.no_grad(), plan.machine.autocast():
        return reporter_of(job).answers(model, part_batches(job, plan, part))


def begin(job: JobTask[Any, Any, Any], config: Config, folder: RunFolder) -> nn.Module:
    """The model before its first step: fresh, or with parts of another run."""
    model = fresh_model(job, config.seed)
    if folder.initial.exists():
        put_weights(model, read_tensors(folder.initial), str(folder.initial))
    return model


def beginning_of(job: JobTask[Any, Any, Any], config: Config, folder: RunFolder) -> Weights:
    """The weights before the first step."""
    return weights_of(begin(job, config, folder))


def keep_best(state: State, job: JobTask[Any, Any, Any], plan: Plan, folder: RunFolder) -> str:
    """Give the model the weights it was best with, and write them down.

    The mean of several checkpoints is taken where it is better than the best of them: while a
    model still learns fast, it is not. Returns the steps the weights are of, in words.
    """
    best = state.progress.best[: plan.train.average]
    steps = [step for _, step in best]
    if best:
        put_mean(state, plan, steps)
        if len(best) > 1 and not improves(state, job, plan, best[0][0]):
            steps = steps[:1]
            put_mean(state, plan, steps)
    elif state.useful is not None:
        put_weights(state.model, state.useful, "the averaged weights")
    state.model.eval()
    weights = {name: whole(tensor) for name, tensor in weights_of(state.model).items()}
    if processes.is_first():
        write_tensors(weights, folder.model)
    processes.wait()
    return ", ".join(f"{step:,}" for step in steps or [state.progress.step])


def put_mean(state: State, plan: Plan, steps: list[int]) -> None:
    """The mean of the weights of some checkpoints, into the model."""
    assert plan.checkpoints is not None
    checkpoints = (checkpoint_weights(plan.checkpoints, step) for step in steps)
    put_weights(state.model, mean(checkpoints), str(plan.checkpoints))


def improves(state: State, job: JobTask[Any, Any, Any], plan: Plan, score: float) -> bool:
    """Whether the model as it is now is as good on the validation part as a score, or better."""
    found = validate(state.model, job, plan, pieces=state.progress.pieces)[job.goal]
    return found >= score if job.higher_is_better else found <= score


def whole_model(
    model: nn.Module, job: JobTask[Any, Any, Any], config: Config, folder: RunFolder
) -> nn.Module:
    """The trained model, in one piece where it was dealt out to several processes."""
    if not is_sharded(model):
        return model
    single = fresh_model(job, config.seed)
    put_weights(single, read_tensors(folder.model), str(folder.model))
    return single.to(choose_machine(config.machine).device).eval()
