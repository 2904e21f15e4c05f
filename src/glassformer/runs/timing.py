"""A time budget as a number of steps, from a few measured ones: a run stays reproducible."""

import itertools
import time
from dataclasses import replace
from typing import Any

import torch

from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.tasks.job import Job
from glassformer.training.feeding import part_batches, training_batches
from glassformer.training.loop import Tally, learn, ready
from glassformer.training.machine import Machine
from glassformer.training.plan import VALIDATIONS, Plan
from glassformer.training.state import State

TRIED, LONGEST_TRY = 20, 5.0  # steps, or seconds, whichever comes first
SPARE = 0.05  # of the time, for what cannot be foreseen
SHARES = (0.125, 0.25, 0.5)  # of the rows, and so of the steps, that a learning curve takes again


class Clock:
    """Counts down from a number of seconds, from when it is made."""

    def __init__(self, seconds: float, reserve: float = 0.0) -> None:
        self.deadline, self.reserve = time.monotonic() + seconds, reserve
        self.seconds = seconds

    @property
    def left(self) -> float:
        """Seconds left, without what is spared for later work."""
        return self.deadline - time.monotonic() - self.reserve - SPARE * self.seconds


def steps_in(
    config: Config, job: Job[Any, Any, Any], machine: Machine, clock: Clock, times: float = 1.0
) -> int:
    """How many steps fit into the time left, with validations between and after them.

    Args:
        times: How often they are made, as for a learning curve.
    """
    plan = Plan(replace(config.train, steps=TRIED), config.data, machine, config.seed)
    step, validation = step_seconds(job, plan), validation_seconds(job, plan)
    passes = 2 + VALIDATIONS  # one to calibrate, one on the test part
    if config.train.validate_every is not None:
        passes, step = 2, step + validation / config.train.validate_every
    left = clock.left - passes * times * validation
    if left < times * step:
        raise GlassformerError(
            f"--time {clock.seconds:.0f}s is too short: reading, validating and comparing leave no "
            f"time for a step; give more time, fewer rows or a smaller --size"
        )
    return int(left / (times * step))


def step_seconds(job: Job[Any, Any, Any], plan: Plan) -> float:
    """The mean time of a step, measured on a model that is thrown away."""
    torch.manual_seed(plan.seed)
    model = job.model().to(plan.machine.device)
    state, tally = State(model, plan.train), Tally(plan.machine.device)
    called = ready(model, plan.machine)
    batches = training_batches(job, plan, 0, 0)
    moments = [time.perf_counter()]
    while len(moments) <= TRIED and moments[-1] - moments[0] < LONGEST_TRY:
        taken = [batch for _, batch in itertools.islice(batches, plan.train.accumulate)]
        learn(state, called, job, plan, taken, tally)
        tally.total.item()  # waits for a GPU
        moments.append(time.perf_counter())
    batches.close()  # type: ignore[attr-defined]
    if len(moments) == 2:
        return moments[1] - moments[0]
    return (moments[-1] - moments[1]) / (len(moments) - 2)  # the first step is slow


def validation_seconds(job: Job[Any, Any, Any], plan: Plan) -> float:
    """The time of one pass over the validation part, from a few of its batches."""
    tokens = job.lengths("valid").sum()
    if not tokens:
        return 0.0
    model = job.model().to(plan.machine.device).eval()
    some = list(itertools.islice(part_batches(job, plan, "valid"), 4))
    started = time.perf_counter()
    with torch.no_grad(), plan.machine.autocast():
        job.score(model, some)
    return (time.perf_counter() - started) * float(tokens) / sum(batch.tokens for batch in some)
