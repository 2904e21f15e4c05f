"""How good the model is meanwhile: the scores of a step, the book of the best, and patience."""

import math
from collections.abc import Callable, Iterator
from contextlib import closing

import torch
from torch import nn

from glassformer import processes
from glassformer.errors import NonFiniteScoresError
from glassformer.tasks.task import SomeBatch, Task
from glassformer.training.checkpoints import discard
from glassformer.training.loader import split_batches
from glassformer.training.setup import Event, TrainSetup, Validation
from glassformer.training.state import State
from glassformer.training.trouble import DivergedError
from glassformer.training.weights import using


def save_and_validate(
    state: State, model: nn.Module, task: Task, setup: TrainSetup, stop: Callable[[], bool]
) -> Iterator[Event]:
    """Save and validate where it is due.

    A step is told before it is saved: after a kill, a log that forgets what came after the last
    checkpoint misses nothing and says nothing twice. It is saved before it is validated, which may
    take long: a kill meanwhile costs the validation alone.
    """
    progress = state.progress
    progress.unvalidated = setup.validates(progress.step) and len(task.lengths("valid")) > 0
    if setup.checkpoints is not None and setup.saves(progress.step):
        state.save(setup.checkpoints)
    if progress.unvalidated:
        yield from validate_saved(state, model, task, setup, stop)


def validate_saved(
    state: State, model: nn.Module, task: Task, setup: TrainSetup, stop: Callable[[], bool]
) -> Iterator[Event]:
    """The validation of a step whose checkpoint is there, and its result in that checkpoint.

    Of a validation that is stopped nothing remains, and the step stays unvalidated.
    """
    progress = state.progress
    try:
        with using(state.model, state.useful):
            scores = validate(model, task, setup, micro_batches=progress.micro_batches, stop=stop)
    except StoppedError:
        return
    except NonFiniteScoresError:
        if setup.checkpoints is not None:
            discard(setup.checkpoints, progress.step)
        raise DivergedError(math.nan, math.nan, progress.step, None) from None
    best = enter(state, task, setup, scores[task.goal])
    yield Validation(progress.step, scores, best)
    progress.unvalidated = False
    if setup.checkpoints is not None:
        state.save_progress(setup.checkpoints)


class StoppedError(Exception):
    """Someone wants the training to stop, inside a validation."""


def validate(
    model: nn.Module,
    task: Task,
    setup: TrainSetup,
    split: str = "valid",
    micro_batches: int = 1,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, float]:
    """The job's scores on a split; several processes go by those of the first.

    The validation split may be sampled, as the settings say.
    """
    most = setup.train.validate_rows if split == "valid" else None

    def until_stopped(batches: Iterator[SomeBatch]) -> Iterator[SomeBatch]:
        for batch in batches:
            if processes.any_of(stop()):
                raise StoppedError
            yield batch

    was_training = model.training
    model.eval()
    try:
        with (
            torch.no_grad(),
            setup.machine.autocast(),
            closing(split_batches(task, setup, split, micro_batches, most)) as batches,
        ):
            scores = task.score(model, until_stopped(batches))
    finally:
        model.train(was_training)
    agreed = processes.broadcast(" ".join(value.hex() for value in map(float, scores.values())))
    return dict(zip(scores, map(float.fromhex, agreed.split()), strict=True))


def enter(state: State, task: Task, setup: TrainSetup, score: float) -> bool:
    """Enter a score in the book of the best, and stop when patience runs out. Is it the best?"""
    progress, sign = state.progress, 1 if task.higher_is_better else -1

    def worth(value: float) -> float:  # what is no number is worse than any
        return -math.inf if math.isnan(value) else sign * value

    better = not progress.best or worth(score) > worth(progress.best[0][0])
    progress.best.append((float(score), progress.step))
    # Of two that score alike, the later one has learned for longer.
    progress.best.sort(key=lambda entry: (-worth(entry[0]), -entry[1]))
    del progress.best[setup.keeps :]
    progress.stale = 0 if better else progress.stale + 1
    progress.stopped = setup.train.patience is not None and progress.stale >= setup.train.patience
    return progress.best[0][1] == progress.step
