"""Batches on their way to the model, prepared ahead by threads.

A batch is dealt out to the processes that train together, and cut into micro-batches where it does
not fit into memory: neither changes which rows a step learns from.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import cast

import numpy as np
import torch
from torch.utils._pytree import tree_map_only

from glassformer import processes
from glassformer.data.batches import RowNumbers, ahead, dealt, epoch_batches, ordered_batches
from glassformer.errors import GlassformerError
from glassformer.tasks.task import ShapedBatch, SomeBatch, Task
from glassformer.training.setup import TrainSetup

SAMPLED, LONGEST_ROWS = 16, 8  # batches and rows that tell the common shape
LARGER_ON_GPU = 4  # batches that are only scored, which need far less memory
SLACK, ROUND = 32, 64  # one part in so many is added to it, up to a multiple

Shape = tuple[int, ...]


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


@dataclass(frozen=True, slots=True)
class Piece:
    """A batch on its way to the model, or a part of one.

    Attributes:
        tokens: How many it has, without what only fills it up.
        fixed: Whether it was filled up to the common shape; it is still on the CPU, pinned.
    """

    place: Place
    batch: SomeBatch
    tokens: int
    fixed: bool


def training_batches(
    task: Task,
    setup: TrainSetup,
    epoch: int,
    batch: int,
    micro_batches: int = 1,
    shape: Shape | None = None,
) -> Generator[Piece, None, None]:
    """Batches of the training split without end, from this one on.

    Args:
        micro_batches: How many each is cut into.
        shape: What those that fit are filled up to.
    """
    found = places(task, setup, epoch, batch, micro_batches)
    return ahead(lambda place: piece_at(task, setup, place, shape), found, setup.data.workers)


def piece_at(task: Task, setup: TrainSetup, place: Place, shape: Shape | None) -> Piece:
    """What stands at a place of the training split."""
    batch: SomeBatch = task.batch("train", place.rows, place.epoch)
    if shape is not None and isinstance(batch, ShapedBatch) and fits(batch.sizes, shape):
        return Piece(place, pinned(batch.filled(shape)), batch.tokens, fixed=True)
    return Piece(place, batch.to(setup.machine.device), batch.tokens, fixed=False)


def common_shape(task: Task, setup: TrainSetup, micro_batches: int = 1) -> Shape | None:
    """A shape that nearly all batches fit, from some of them; None where they cannot be filled."""
    some = islice(places(task, setup, 0, 0, micro_batches), SAMPLED)
    longest = np.argsort(task.lengths("train"))[-LONGEST_ROWS:]
    sizes = []
    for rows in (*(place.rows for place in some), longest):
        batch = task.batch("train", rows, 0)
        if not isinstance(batch, ShapedBatch) or not batch.sizes:
            return None
        sizes.append(batch.sizes)
    return tuple(with_slack(int(size)) for size in np.max(sizes, axis=0))


def first_piece(task: Task, setup: TrainSetup, micro_batches: int, shape: Shape) -> Piece:
    """The first piece of the training split that fits a shape."""
    pieces = (
        piece_at(task, setup, place, shape) for place in places(task, setup, 0, 0, micro_batches)
    )
    return next(piece for piece in pieces if piece.fixed)


def with_slack(size: int) -> int:
    """A little more, and a round number.

    >>> with_slack(1000), with_slack(0)
    (1088, 0)
    """
    return -(-(size + size // SLACK) // ROUND) * ROUND


def fits(sizes: Shape, shape: Shape) -> bool:
    """Whether a batch of these sizes can be filled up to a shape."""
    return all(size <= most for size, most in zip(sizes, shape, strict=True))


def pinned(batch: SomeBatch) -> SomeBatch:
    """The same in memory that a GPU can copy from while it computes."""
    if not torch.cuda.is_available():
        return batch
    return cast(SomeBatch, tree_map_only(torch.Tensor, torch.Tensor.pin_memory, batch))


def split_batches(
    task: Task, setup: TrainSetup, split: str, micro_batches: int = 1, most: int | None = None
) -> Generator[SomeBatch, None, None]:
    """Rows of a split, each once, without anything random.

    Args:
        most: How many rows at most: a sample, the same every time.
    """
    lengths, device = task.lengths(split), setup.machine.device
    if not len(lengths):
        raise GlassformerError(f"the {split} split has no rows; give it some")
    larger = LARGER_ON_GPU if device.type == "cuda" else 1
    budget = max(1, larger * setup.data.batch_tokens // micro_batches)
    rows = sample_rows(len(lengths), most)
    chosen = ordered_batches(lengths[rows], budget, padded=task.padded)
    batches = (rows[some] for some in chosen)
    return ahead(lambda some: task.batch(split, some, None).to(device), batches, setup.data.workers)


def sample_rows(count: int, most: int | None) -> RowNumbers:
    """Row numbers up to a count: all of them, or so many at random, the same every time."""
    if most is None or most >= count:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


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
        mixed=mixes(task, setup),
        seed=setup.seed,
        epoch=epoch,
    )


def mixes(task: Task, setup: TrainSetup) -> bool:
    """Whether a batch holds rows of any length: packed on a GPU, that costs nothing.

    Batches are then alike in rows and tokens, as one shape for all of them wants it.
    """
    return setup.machine.device.type == "cuda" and not task.padded
