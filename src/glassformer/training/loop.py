"""The loop: one for every job, a generator of what happened.

The caller owns it: the command line draws a bar, a notebook a curve, a test asserts. Numbers are
read from the device only when they are reported.
"""

import math
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.errors import GlassformerError
from glassformer.tasks.base import SomeBatch, Task
from glassformer.training.feeding import part_batches, training_batches
from glassformer.training.machine import Machine
from glassformer.training.objective import objective
from glassformer.training.plan import Event, Plan, Step, Validation
from glassformer.training.schedules import rate_at
from glassformer.training.state import State
from glassformer.training.weights import using, weights_of


def train(state: State, task: Task, plan: Plan) -> Generator[Event, None, None]:
    """Teach a model its job, in place, from wherever its state stands."""
    progress, model = state.progress, ready(state.model, plan.machine)
    batches = training_batches(task, plan, progress.epoch, progress.batch)
    tally = Tally(plan.machine.device)
    try:
        while progress.step < plan.steps and not progress.stopped:
            model.train()
            taken = list(islice(batches, plan.train.accumulate))
            learn(state, model, task, plan, [batch for _, batch in taken], tally)
            last, _ = taken[-1]
            progress.epoch, progress.batch = last.next_epoch, last.next_batch
            if plan.reports(progress.step):
                step = tally.read(progress.step, plan)
                progress.seconds += time.perf_counter() - tally.started
                yield step
                yield from check_and_save(state, model, task, plan)
                tally = Tally(plan.machine.device)
    finally:
        batches.close()  # type: ignore[attr-defined]
        model.eval()


def learn(
    state: State,
    model: nn.Module,
    task: Task,
    plan: Plan,
    batches: list[SomeBatch],
    tally: "Tally",
) -> None:
    """One step: gradients of all its batches, divided once by what they count, and a move."""
    step = state.progress.step = state.progress.step + 1
    count = torch.zeros((), device=plan.machine.device)
    for number, batch in enumerate(batches):
        dice = dice_seed(plan.seed, step, number)
        with plan.machine.autocast():
            total, loss = objective(model, task, batch, plan.train.regularise, dice)
        total.backward()
        count += loss.count
        tally.add(loss.total, loss.count, batch.tokens)
    gradients = [p.grad for p in state.model.parameters() if p.grad is not None]
    torch._foreach_div_(gradients, count.clamp(min=1e-12))
    norm = nn.utils.get_total_norm(gradients)
    tally.norm = torch.maximum(tally.norm, norm)
    if plan.train.clip:
        nn.utils.clip_grads_with_norm_(state.model.parameters(), plan.train.clip, norm)
    state.optimisers.step(rate_at(step, plan.steps, plan.train.optimiser))
    if state.average is not None:
        state.average.update(weights_of(state.model), step)


def check_and_save(state: State, model: nn.Module, task: Task, plan: Plan) -> Iterator[Event]:
    """Validate and save where it is due.

    A step is told before it is saved: after a kill, a log that forgets what came after the last
    checkpoint misses nothing and says nothing twice.
    """
    step = state.progress.step
    if plan.validates(step) and len(task.lengths("valid")):
        with using(state.model, state.useful):
            scores = validate(model, task, plan)
        yield Validation(step, scores, enter(state, task, plan, scores[task.goal]))
    if plan.checkpoints is not None and plan.saves(step):
        state.save(plan.checkpoints)


def validate(model: nn.Module, task: Task, plan: Plan, part: str = "valid") -> dict[str, float]:
    """The job's scores on a part."""
    was_training = model.training
    model.eval()
    try:
        with (
            torch.no_grad(),
            plan.machine.autocast(),
            closing(part_batches(task, plan, part)) as batches,
        ):
            return task.score(model, batches)
    finally:
        model.train(was_training)


def enter(state: State, task: Task, plan: Plan, score: float) -> bool:
    """Enter a score in the book of the best, and stop when patience runs out. Is it the best?"""
    progress, sign = state.progress, 1 if task.higher_is_better else -1

    def worth(value: float) -> float:  # what is no number is worse than any
        return -math.inf if math.isnan(value) else sign * value

    best = not progress.best or worth(score) > worth(progress.best[0][0])
    progress.best.append((float(score), progress.step))
    # Of two that score alike, the later one has learned for longer.
    progress.best.sort(key=lambda entry: (-worth(entry[0]), -entry[1]))
    del progress.best[plan.keeps :]
    progress.stale = 0 if best else progress.stale + 1
    progress.stopped = plan.train.patience is not None and progress.stale >= plan.train.patience
    return best


def dice_seed(seed: int, step: int, number: int) -> int:
    """Where the dice of a batch of a step begin: dropout follows from these numbers alone."""
    words = np.random.SeedSequence((seed, step, number)).generate_state(1, np.uint64)
    return int(words[0] >> 1)  # as PyTorch takes it, whatever the person's seed


def ready(model: nn.Module, machine: Machine) -> nn.Module:
    """The model as it is called: compiled, where that is asked for."""
    return torch.compile(model, dynamic=True) if machine.compile else model  # type: ignore[return-value]


class Tally:
    """Sums on the device since the last report, and the longest gradient."""

    def __init__(self, device: torch.device) -> None:
        self.total, self.count = torch.zeros((), device=device), torch.zeros((), device=device)
        self.norm, self.tokens = torch.zeros((), device=device), 0
        self.started = time.perf_counter()

    def add(self, total: Tensor, count: Tensor, tokens: int) -> None:
        """One batch more."""
        self.total += total.detach()
        self.count += count
        self.tokens += tokens

    def read(self, step: int, plan: Plan) -> Step:
        """The report; a loss that is no number ends the training."""
        loss, norm = float(self.total / self.count.clamp(min=1e-12)), float(self.norm)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise GlassformerError(
                f"training diverged at step {step}: loss {loss}, length of the gradient {norm}; "
                f"lower the rate, for example --set train.optimiser.rate=3e-4"
            )
        rate = rate_at(step, plan.steps, plan.train.optimiser)
        return Step(step, loss, rate, norm, self.tokens / (time.perf_counter() - self.started))
