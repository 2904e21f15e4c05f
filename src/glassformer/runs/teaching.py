"""Training a run, from the start or from where it stopped, to the report at the end."""

import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from glassformer.config.run import Config
from glassformer.runs.display import Display, clock
from glassformer.runs.folder import RunFolder
from glassformer.runs.log import Log
from glassformer.runs.parts import fresh_model
from glassformer.runs.timing import SHARES, Clock, steps_in
from glassformer.tasks.job import Job
from glassformer.training.averages import mean
from glassformer.training.feeding import part_batches
from glassformer.training.loop import train
from glassformer.training.machine import choose_machine
from glassformer.training.plan import Plan
from glassformer.training.state import State, checkpoint_weights
from glassformer.training.weights import put_weights, read_tensors, weights_of, write_tensors


@dataclass(frozen=True, slots=True)
class Taught:
    """A trained run, in memory: `steps` were done, the weights are those of step `kept`."""

    config: Config
    job: Job[Any, Any, Any]
    model: nn.Module
    plan: Plan
    seconds: float
    steps: int
    kept: str


def teach(folder: RunFolder, display: Display, deadline: Clock | None = None) -> Taught:
    """Train a run to its end and keep the best model; `deadline` is for a run given by time."""
    config = folder.config()
    machine = choose_machine(config.machine)
    job = folder.job(config, folder.data)
    model = begin(job, config, folder).to(machine.device)
    if config.train.steps is None:
        given = deadline or Clock(config.train.time or 0.0)
        times = 1 + sum(SHARES) if config.curve else 1.0
        with display.waiting("timing a few steps"):
            steps = steps_in(config, job, machine, given, times)
        config = replace(config, train=replace(config.train, steps=steps))
        folder.write_config(config)
        display.say(f"{clock(given.seconds)} are enough for {steps:,} steps")
    plan = Plan(config.train, config.data, machine, config.seed, folder.checkpoints)
    state = State(model, config.train)
    if state.load(folder.checkpoints):
        display.say(f"goes on from step {state.progress.step:,} of {plan.steps:,}")
    size = sum(p.numel() for p in model.parameters())
    display.say(f"{config.job}: {size:,} parameters, {plan.steps:,} steps on {machine.described}")
    log = Log(folder.metrics, folder.path / "board", state.progress.step)
    started = time.perf_counter()
    try:
        for event in display.follow(train(state, job, plan), plan.steps, config.job):
            log.write(event)
    finally:
        log.close()
    progress = state.progress
    if progress.stopped:
        display.say(
            f"stopped at step {progress.step:,}: not better for {progress.stale} validations"
        )
    kept = keep_best(state, plan, folder)
    display.say(f"trained for {clock(time.perf_counter() - started)}; kept step {kept}")
    if len(job.lengths("valid")):
        job.finish(answers_on(job, model, plan, "valid"))
    return Taught(config, job, model, plan, progress.seconds, progress.step, kept)


def answers_on(job: Job[Any, Any, Any], model: nn.Module, plan: Plan, part: str) -> Any:
    """What a model says about all rows of a part."""
    model.eval()
    with torch.no_grad(), plan.machine.autocast():
        return job.answers(model, part_batches(job, plan, part))


def begin(job: Job[Any, Any, Any], config: Config, folder: RunFolder) -> nn.Module:
    """The model before its first step: fresh, or with parts of another run."""
    model = fresh_model(job, config.seed)
    if folder.initial.exists():
        put_weights(model, read_tensors(folder.initial), str(folder.initial))
    return model


def keep_best(state: State, plan: Plan, folder: RunFolder) -> str:
    """Give the model the weights it was best with, or the mean of several, and write them down.

    Returns the steps they are of, in words.
    """
    best = [step for _, step in state.progress.best[: plan.train.average]]
    if best:
        assert plan.checkpoints is not None
        checkpoints = (checkpoint_weights(plan.checkpoints, step) for step in best)
        put_weights(state.model, mean(checkpoints), str(plan.checkpoints))
    elif state.useful is not None:
        put_weights(state.model, state.useful, "the averaged weights")
    state.model.eval()
    write_tensors(weights_of(state.model), folder.model)
    return ", ".join(f"{step:,}" for step in best or [state.progress.step])
