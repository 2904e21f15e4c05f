"""Batches on their way to the model, prepared ahead by threads.

A batch is dealt out to the processes that train together, and cut into pieces where it does not fit
the memory: neither changes which rows a step learns from.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from glassformer import processes
from glassformer.data.batches import RowNumbers, ahead, dealt, epoch_batches, ordered_batches
from glassformer.errors import GlassformerError
from glassformer.tasks.task import SomeBatch, Task
from glassformer.training.plan import Plan


@dataclass(frozen=True, slots=True)
class Place:
    """Which rows make a piece of a batch, and where the batch is.

    Attributes:
        rows: Those of this piece and process.
        batch_rows: Those of the whole batch.
        idle: Whether all rows went to other processes; one of them stands in and counts nothing.
        ends: Whether the piece is the last of its batch.
        next_epoch, next_batch: The batch after it.
    """

    epoch: int
    batch: int
    rows: RowNumbers
    batch_rows: RowNumbers
    idle: bool
    ends: bool
    next_epoch: int
    next_batch: int


def training_batches(
    task: Task, plan: Plan, epoch: int, batch: int, pieces: int = 1
) -> Generator[tuple[Place, SomeBatch], None, None]:
    """Batches of the training part without end, from this one on, each in so many pieces."""

    def make(place: Place) -> tuple[Place, SomeBatch]:
        content = task.batch("train", place.rows, place.epoch)
        return place, content.to(plan.machine.device)

    return ahead(make, places(task, plan, epoch, batch, pieces), plan.data.workers)


def part_batches(
    task: Task, plan: Plan, part: str, pieces: int = 1
) -> Generator[SomeBatch, None, None]:
    """Every row of a part once, without anything random."""
    budget, lengths = max(1, plan.data.batch_tokens // pieces), task.lengths(part)
    if not len(lengths):
        raise GlassformerError(f"the {part} part has no rows; give it some")
    chosen = ordered_batches(lengths, budget, padded=task.padded)
    device = plan.machine.device
    return ahead(lambda rows: task.batch(part, rows, None).to(device), chosen, plan.data.workers)


def places(task: Task, plan: Plan, epoch: int, batch: int, pieces: int = 1) -> Iterator[Place]:
    """The way through the epochs, from this batch on."""
    while True:
        batches = one_epoch(task, plan, epoch)
        if not batches:
            raise GlassformerError("the training part has no rows; give it some")
        for at in range(batch, len(batches)):
            ends = at + 1 == len(batches)
            mine = cut(batches[at], processes.count(), pieces, processes.place())
            for number, rows in enumerate(mine):
                yield Place(
                    epoch=epoch,
                    batch=at,
                    rows=rows if len(rows) else batches[at][:1],
                    batch_rows=batches[at],
                    idle=not len(rows),
                    ends=number + 1 == len(mine),
                    next_epoch=epoch + ends,
                    next_batch=0 if ends else at + 1,
                )
        epoch, batch = epoch + 1, 0


def cut(rows: RowNumbers, count: int, pieces: int, place: int) -> list[RowNumbers]:
    """The pieces of a batch for one of several processes; all processes get equally many.

    >>> import numpy as np
    >>> [piece.tolist() for piece in cut(np.arange(5), 2, 2, 1)]
    [[1], [3]]
    """
    hands = dealt(rows, count * pieces)
    return [hands[start + place] for start in range(0, len(hands), count) if len(hands[start])]


def one_epoch(task: Task, plan: Plan, epoch: int) -> list[RowNumbers]:
    """The rows of each batch of an epoch."""
    return epoch_batches(
        task.lengths("train"),
        plan.data.batch_tokens,
        padded=task.padded,
        seed=plan.seed,
        epoch=epoch,
    )
