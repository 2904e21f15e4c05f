"""Batches on their way to the model, prepared ahead by threads.

A batch is dealt out to the processes that train together, and cut into micro-batches where it does
not fit into memory: neither changes which rows a step learns from.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from glassformer import processes
from glassformer.data.batches import RowNumbers, ahead, dealt, epoch_batches, ordered_batches
from glassformer.errors import GlassformerError
from glassformer.tasks.task import SomeBatch, Task
from glassformer.training.setup import TrainSetup


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
    task: Task, setup: TrainSetup, epoch: int, batch: int, micro_batches: int = 1
) -> Generator[tuple[Place, SomeBatch], None, None]:
    """Batches of the training split without end, from this one on, in so many micro-batches."""

    def make(place: Place) -> tuple[Place, SomeBatch]:
        content = task.batch("train", place.rows, place.epoch)
        return place, content.to(setup.machine.device)

    return ahead(make, places(task, setup, epoch, batch, micro_batches), setup.data.workers)


def split_batches(
    task: Task, setup: TrainSetup, split: str, micro_batches: int = 1
) -> Generator[SomeBatch, None, None]:
    """Every row of a split once, without anything random."""
    budget, lengths = max(1, setup.data.batch_tokens // micro_batches), task.lengths(split)
    if not len(lengths):
        raise GlassformerError(f"the {split} split has no rows; give it some")
    chosen = ordered_batches(lengths, budget, padded=task.padded)
    device = setup.machine.device
    return ahead(lambda rows: task.batch(split, rows, None).to(device), chosen, setup.data.workers)


def places(
    task: Task, setup: TrainSetup, epoch: int, batch: int, micro_batches: int = 1
) -> Iterator[Place]:
    """The way through the epochs, from this batch on."""
    while True:
        batches = one_epoch(task, setup, epoch)
        if not batches:
            raise GlassformerError("the training split has no rows; give it some")
        for at in range(batch, len(batches)):
            ends = at + 1 == len(batches)
            mine = cut(batches[at], processes.world_size(), micro_batches, processes.rank())
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


def cut(rows: RowNumbers, count: int, micro_batches: int, place: int) -> list[RowNumbers]:
    """The micro-batches of a batch for one of several processes; all get equally many.

    >>> import numpy as np
    >>> [piece.tolist() for piece in cut(np.arange(5), 2, 2, 1)]
    [[1], [3]]
    """
    hands = dealt(rows, count * micro_batches)
    return [hands[start + place] for start in range(0, len(hands), count) if len(hands[start])]


def one_epoch(task: Task, setup: TrainSetup, epoch: int) -> list[RowNumbers]:
    """The rows of each batch of an epoch."""
    return epoch_batches(
        task.lengths("train"),
        setup.data.batch_tokens,
        padded=task.padded,
        seed=setup.seed,
        epoch=epoch,
    )
