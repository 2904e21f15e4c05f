"""Validation during training: scores, the list of the best checkpoints, and early stopping."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice

import torch
from torch import nn

from glassformer import processes
from glassformer.data.batches import RowNumbers
from glassformer.errors import NonFiniteScoresError
from glassformer.tasks.task import SomeBatch, Task
from glassformer.training.checkpoints import discard
from glassformer.training.diverged import DivergedError
from glassformer.training.fsdp import is_sharded
from glassformer.training.loader import evaluation_rows, load_for_evaluation
from glassformer.training.setup import Event, TrainSetup, Validation
from glassformer.training.state import State
from glassformer.training.weights import using_weights


def save_and_validate(
    state: State, model: nn.Module, task: Task, setup: TrainSetup, stop: Callable[[], bool]
) -> Iterator[Event]:
    """Save and validate, if either is due after this step.

    A step is reported before it is saved: a log cut back to the last checkpoint after a crash is
    then complete and has no duplicates. It is saved before it is validated, which may take long: a
    crash meanwhile costs only the validation.
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
    """Validate a step that is already saved, and add the result to its checkpoint.

    A validation that is interrupted leaves no trace: the step stays unvalidated.
    """
    progress = state.progress
    try:
        with using_weights(state.model, state.averaged_weights):
            scores = validate(model, task, setup, micro_batches=progress.micro_batches, stop=stop)
    except StoppedError:
        return
    except NonFiniteScoresError:
        if setup.checkpoints is not None:
            discard(setup.checkpoints, progress.step)
        raise DivergedError(math.nan, math.nan, progress.step, None) from None
    best = record_score(state, task, setup, scores[task.goal], scores.get("loss", math.nan))
    yield Validation(progress.step, scores, best)
    progress.unvalidated = False
    if setup.checkpoints is not None:
        state.save_progress(setup.checkpoints)


class StoppedError(Exception):
    """A request to stop arrived during a validation."""


def validate(
    model: nn.Module,
    task: Task,
    setup: TrainSetup,
    split: str = "valid",
    micro_batches: int = 1,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, float]:
    """The job's scores on a split, computed by all processes together.

    Where each holds the whole model, batches are dealt out; sharded weights need all processes for
    every batch. `train.validate_rows` limits the validation split to a sample.
    """
    max_rows = setup.train.validate_rows if split == "valid" else None
    batches = evaluation_rows(task, setup, split, micro_batches, max_rows)

    def until_stopped(loaded: Iterator[SomeBatch], turns: int) -> Iterator[SomeBatch]:
        for _ in range(turns):  # of every process, so that all of them ask each other
            if processes.any_of(stop()):
                raise StoppedError
            yield from islice(loaded, 1)

    was_training = model.training
    model.eval()
    try:
        with (
            torch.no_grad(),
            setup.machine.autocast(),
            in_shares(batches, model) as shares,
            closing(load_for_evaluation(task, setup, split, shares[processes.rank()])) as loaded,
        ):
            scores = task.score(model, until_stopped(loaded, len(shares[0])))
    finally:
        model.train(was_training)
    agreed = processes.broadcast(" ".join(value.hex() for value in map(float, scores.values())))
    return dict(zip(scores, map(float.fromhex, agreed.split()), strict=True))


@contextmanager
def in_shares(
    batches: Sequence[RowNumbers], model: nn.Module
) -> Iterator[Sequence[Sequence[RowNumbers]]]:
    """The share of each process in some batches; every process takes all if the model is sharded.

    The first share is the largest.
    """
    several = processes.world_size() if processes.is_joined() else 1
    if not 1 < several <= len(batches) or is_sharded(model):
        yield [batches] * processes.world_size()
        return
    with processes.dealt_out():
        yield [batches[number::several] for number in range(several)]


def record_score(
    state: State, task: Task, setup: TrainSetup, score: float, loss: float = math.nan
) -> bool:
    """Add a score to the best ones, and stop early if patience runs out; True if it is the best.

    Nothing right is never the best, even where no validation before did better.

    Args:
        loss: On the same rows; of equal scores, the one with the lower loss is better.
    """
    progress, sign = state.progress, 1 if task.higher_is_better else -1

    def goodness(value: float) -> float:  # NaN is worse than any number
        return -math.inf if math.isnan(value) else sign * value

    better = not progress.best or goodness(score) > goodness(progress.best[0][0])
    progress.best.append((float(score), progress.step))
    if math.isfinite(loss):
        progress.losses[str(progress.step)] = float(loss)

    def rank(entry: tuple[float, int]) -> tuple[float, float, int]:  # the best first
        value, step = entry  # of equal losses, the later one was trained for longer
        return -goodness(value), progress.losses.get(str(step), math.inf), -step

    progress.best.sort(key=rank)
    del progress.best[setup.kept_checkpoints :]
    steps = {str(step) for _, step in progress.best}
    progress.losses = {step: one for step, one in progress.losses.items() if step in steps}
    progress.stale = 0 if better else progress.stale + 1
    progress.stopped = setup.train.patience is not None and progress.stale >= setup.train.patience
    nothing_right = task.higher_is_better and score == 0
    return progress.best[0][1] == progress.step and not nothing_right
