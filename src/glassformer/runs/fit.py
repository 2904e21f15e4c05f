"""Training a run, from the start or from a checkpoint."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
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
from glassformer.runs.forecast import Forecaster
from glassformer.runs.log import Log
from glassformer.runs.prepare import Prepared, initial_model, resolve_validation, validation_line
from glassformer.runs.speed import SpeedMeter
from glassformer.runs.stopping import stopping
from glassformer.runs.timing import (
    MOST_ANSWERED,
    Budget,
    Costs,
    fitting_trainings,
    learns_from_answers,
    measured_costs,
    steps_of_flops,
    too_short,
    trainings,
)
from glassformer.runs.warm_start import fresh_model
from glassformer.tasks.job import AnyTask
from glassformer.training.averages import mean
from glassformer.training.checkpoints import checkpoint_weights, intact_best, prune_checkpoints
from glassformer.training.fsdp import gathered, is_sharded, shard
from glassformer.training.loader import evaluation_rows, load_for_evaluation
from glassformer.training.machine import Machine, choose_machine, training_machine
from glassformer.training.memory import trim_heap
from glassformer.training.progress import Progress
from glassformer.training.recovery import train_with_recovery
from glassformer.training.setup import VALIDATIONS, Event, TimedLength, TrainSetup
from glassformer.training.state import State
from glassformer.training.validation import in_shares, validate
from glassformer.training.weights import (
    Weights,
    load_weights,
    read_tensors,
    weights_of,
    write_tensors,
)
from glassformer.wording import counted


@dataclass(frozen=True, slots=True)
class FitResult:
    """A trained run in memory, after `steps` steps.

    Attributes:
        seconds: Of training, with its validations and checkpoints.
        kept: The steps whose weights it has: one, or several that are averaged.
        refitted: The second training on all labelled rows, if there was one.
    """

    config: Config
    task: AnyTask
    model: nn.Module
    setup: TrainSetup
    seconds: float
    steps: int
    kept: tuple[int, ...]
    refitted: "FitResult | None" = None


def fit(
    run: Prepared, display: Display, budget: Budget | None = None, share: float | None = None
) -> FitResult:
    """Train a run to its end and keep the best model.

    Args:
        budget: Ends training by the clock, if it is limited.
        share: Of the time left, for this training; None leaves what a second one and a learning
            curve take.
    """
    task, folder, budget = run.task, run.folder, budget or Budget()
    machine = training_machine(run.config.machine)
    config = resolve_budget(run, machine, display, budget)
    length = timed_length(config, task, budget, share or 1 / trainings(config))
    setup = TrainSetup(config.train, config.data, machine, config.seed, folder.checkpoints, length)
    model = run.model.to(machine.device)
    size = sum(p.numel() for p in model.parameters())
    state = initial_state(model, setup, display)
    steps = counted(setup.steps, "step")
    display.say(f"{config.job}: {size:,} parameters, {steps} on {machine.described}")
    progress = state.progress
    started = time.monotonic() - progress.wall
    with stopping(display.say) as stop, logged(folder, progress) as log:
        forecaster, speed = Forecaster(state, task, setup), SpeedMeter()
        initial = partial(initial_weights, task, config, folder)
        events = forecaster.follow(train_with_recovery(state, task, setup, initial, stop))
        for event in display.follow(speed.follow(events), lambda: setup.steps, config.job):
            log(event)
            state.progress.wall = time.monotonic() - started
            config = noted_steps(run, config, setup.steps)
    progress = state.progress
    progress.wall = time.monotonic() - started
    setup = replace(setup, train=config.train, length=None)
    finish(state, task, setup, display)
    if (line := speed.line(state, task, setup)) is not None:
        display.say(line)
    if processes.is_first():
        drop_checksums(folder.path)
    kept = keep_weights(state, task, setup, folder)
    prune_checkpoints(folder.checkpoints, progress, finished=True)
    display.say(f"trained for {clock(progress.wall)}; kept step {listed(kept)}")
    forecaster.report(folder, display)
    model = gathered_model(state.model, task, config, folder)
    calibrate(task, model, setup, display, budget)
    learn_from_answers(task, model, setup, folder, config, display)
    trim_heap(machine.device)
    return FitResult(config, task, model, setup, progress.wall, progress.step, kept)


def timed_length(config: Config, task: AnyTask, budget: Budget, share: float) -> TimedLength | None:
    """Ends a training when its share of the time left is over; None without a limit."""
    if not budget.limited:
        return None
    pause = calibration = 0.0
    if (costs := budget.costs) is not None:
        rows, sampled = len(task.lengths("valid")), config.train.validate_rows
        pause = costs.checkpoint + costs.validation * min(1.0, (sampled or rows) / max(1, rows))
        calibration = costs.calibration
    seconds = share * budget.left - calibration
    return TimedLength(config.train.steps or 1, time.monotonic() + seconds, pause)


def noted_steps(run: Prepared, config: Config, steps: int) -> Config:
    """The settings with this number of steps, written down where the clock has revised it."""
    if steps == config.train.steps:
        return config
    run.config = replace(config, train=replace(config.train, steps=steps))
    if processes.is_first():
        run.folder.write_config(run.config)
    return run.config


def finish(state: State, task: AnyTask, setup: TrainSetup, display: Display) -> None:
    """Report early stopping, and skip best checkpoints that are damaged."""
    progress = state.progress
    if progress.stopped:
        display.say(
            f"stopped at step {progress.step:,}: no better {task.goal} in {progress.stale} "
            f"validations"
        )
    assert setup.checkpoints is not None
    if setup.train.weights == "last":
        return
    progress.best, lost = intact_best(setup.checkpoints, progress)
    for damage in lost:
        display.say(f"{damage}; using the next best checkpoint")


def calibrate(
    task: AnyTask, model: nn.Module, setup: TrainSetup, display: Display, budget: Budget
) -> None:
    """Let the reporter of the first process calibrate and complete the model."""
    reporter = reporter_of(task)
    if budget.costs is not None:
        reporter.seconds = budget.costs.baseline
    has_rows = len(task.lengths("valid")) > 0
    if reporter.calibrates and has_rows:
        answers = answers_on(task, model, setup, "valid")
        if processes.is_first():
            reporter.calibrate(answers)
            started = time.monotonic()
            with display.waiting("calibrating"):
                sentences = reporter.complete(answers)
            budget.take_from_reserve(time.monotonic() - started)
            for sentence in sentences:
                display.say(sentence)
    if processes.is_first() and not has_rows:
        for sentence in reporter.decisions():  # such as what is left out for want of rows
            display.say(sentence)
    processes.wait()


def learn_from_answers(
    task: AnyTask,
    model: nn.Module,
    setup: TrainSetup,
    folder: RunFolder,
    config: Config,
    display: Display,
) -> None:
    """Let the task of the first process learn from the final answers to some validation rows."""
    if not learns_from_answers(task):
        return
    own = task if processes.is_first() else folder.open_task(config, folder.data)  # calibrated
    with display.waiting("answering validation rows"):
        answers = answers_on(own, model, setup, "valid", max_rows=MOST_ANSWERED)
    if processes.is_first():
        task.calibrate(answers)
    processes.wait()


def resolve_budget(run: Prepared, machine: Machine, display: Display, budget: Budget) -> Config:
    """Turn a budget into a number of steps and store it; the first process decides."""
    config = run.config
    if config.train.steps is not None:
        return config
    lines: list[str] = []
    if config.train.flops is not None:
        text = f"{config.train.flops:.3g} FLOPs"
        found = steps_of_flops(config, run.task, machine)
    else:
        text, costs = clock(budget.seconds), costs_in(run, machine, display, budget)
        config, found, lines = fitting_trainings(config, costs, budget)
    decided = {"steps": found, "refit": config.train.refit, "curve": config.curve}
    decided = json.loads(processes.broadcast(json.dumps(decided)))
    steps = decided["steps"]
    if not steps:
        assert budget.costs is not None  # compute for less than a step is refused before
        raise too_short(config, budget.costs, budget)
    train = replace(config.train, steps=steps, refit=decided["refit"])
    config = resolve_validation(replace(config, train=train, curve=decided["curve"]), run.task)
    if budget.costs is not None and config.train.validate_every is None:
        config = with_affordable_validations(config, budget.costs)
    if processes.is_first():
        run.folder.write_config(config)
    display.say(f"{'about ' * budget.limited}{counted(steps, 'step')} fit into {text}")
    for line in filter(None, (*lines, validation_line(config, run.task))):
        display.say(line)
    run.config = run.task.config = config
    return config


def costs_in(run: Prepared, machine: Machine, display: Display, budget: Budget) -> Costs:
    """What a run costs, measured once in a command; what the end takes is kept in reserve."""
    if budget.costs is None:
        with display.waiting("timing a few steps"):
            budget.costs = measured_costs(run.config, run.task, machine, budget)
        budget.reserve = budget.costs.end
    return budget.costs


def with_affordable_validations(config: Config, costs: Costs) -> Config:
    """The settings with fewer validations, where the usual number would take too long."""
    steps = config.train.steps or 1
    times = costs.validations(steps * costs.step)
    if times == VALIDATIONS:
        return config
    return replace(config, train=replace(config.train, validate_every=-(-steps // times)))


def initial_state(model: nn.Module, setup: TrainSetup, display: Display) -> State:
    """The state before the first step, or at the last checkpoint of an interrupted run."""
    if setup.train.recompute:
        recompute_activations(model)
    if setup.train.shard and processes.is_launched():  # a single process holds it all anyway
        shard(model, setup.machine)
    state = State(model, setup.train)
    assert setup.checkpoints is not None
    if state.load(setup.checkpoints):
        for damage in state.damaged:
            display.say(f"{damage}; using the next best checkpoint")
        display.say(f"resuming from step {state.progress.step:,} of {setup.steps:,}")
    return state


@contextmanager
def logged(folder: RunFolder, progress: Progress) -> Iterator[Callable[[Event], None]]:
    """A function that logs events from here on; only the first process writes."""
    if not processes.is_first():
        yield lambda event: None
        return
    board, due = folder.path / "board", progress.unvalidated
    log = Log(folder.metrics, board, progress.step, unvalidated=due)
    try:
        yield log.write
    finally:
        log.close()


def answers_on(
    task: AnyTask, model: nn.Module, setup: TrainSetup, split: str, max_rows: int | None = None
) -> Any:
    """The answers of a model for the rows of a split, computed by all processes together.

    Args:
        max_rows: Of more rows, a sample of so many is answered.
    """
    model.eval()
    batches = evaluation_rows(task, setup, split, max_rows=max_rows)
    with torch.no_grad(), setup.machine.autocast(), in_shares(batches, model) as shares:
        loaded = load_for_evaluation(task, setup, split, shares[processes.rank()])
        return task.sampled(task.answers(model, loaded), split)


def initial_weights(task: AnyTask, config: Config, folder: RunFolder) -> Weights:
    """The weights before the first step."""
    return weights_of(initial_model(task, config, folder))


def listed(steps: Sequence[int]) -> str:
    """Steps in words."""
    return ", ".join(f"{step:,}" for step in steps)


def keep_weights(
    state: State, task: AnyTask, setup: TrainSetup, folder: RunFolder
) -> tuple[int, ...]:
    """Load the best weights into the model, unless the last ones are wanted, and save them.

    The mean of several checkpoints is used if it beats the best of them: while a model still
    improves quickly, it does not. Returns the steps of the weights.
    """
    best = state.progress.best[: setup.train.average] if setup.train.weights == "best" else []
    steps = [step for _, step in best]
    if best:
        put_mean(state, setup, steps)
        if len(best) > 1 and not improves(state, task, setup, best[0][0]):
            steps = steps[:1]
            put_mean(state, setup, steps)
    elif state.averaged_weights is not None:
        load_weights(state.model, state.averaged_weights, "the averaged weights")
    state.model.eval()
    weights = {name: gathered(tensor) for name, tensor in weights_of(state.model).items()}
    if processes.is_first():
        write_tensors(weights, folder.model)
    processes.wait()
    return tuple(steps) or (state.progress.step,)


def put_mean(state: State, setup: TrainSetup, steps: list[int]) -> None:
    """Load the mean of the weights of some checkpoints into the model."""
    assert setup.checkpoints is not None
    checkpoints = (checkpoint_weights(setup.checkpoints, step) for step in steps)
    load_weights(state.model, mean(checkpoints), str(setup.checkpoints))


def improves(state: State, task: AnyTask, setup: TrainSetup, score: float) -> bool:
    """Whether the model scores at least as well on the validation split."""
    found = validate(state.model, task, setup, micro_batches=state.progress.micro_batches)[
        task.goal
    ]
    return found >= score if task.higher_is_better else found <= score


def gathered_model(model: nn.Module, task: AnyTask, config: Config, folder: RunFolder) -> nn.Module:
    """The trained model, gathered if it was sharded."""
    if not is_sharded(model):
        return model
    single = fresh_model(task, config.seed)
    load_weights(single, read_tensors(folder.model), str(folder.model))
    return single.to(choose_machine(config.machine).device).eval()
