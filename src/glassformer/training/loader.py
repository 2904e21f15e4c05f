"""The data loader: batches prepared ahead of time by threads.

A batch is distributed over the processes that train together, and split into micro-batches if it
does not fit in memory. Neither changes which rows a step learns from.
"""

from collections.abc import Generator, Iterator, Sequence
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

SAMPLED, LONGEST_ROWS = 16, 8  # batches, and single rows, that determine the common shape
LARGER_ON_GPU = 4  # times the batch size for evaluation, which needs far less memory
SLACK, MULTIPLE = 32, 64  # a size grows by 1/32 and is rounded up to a multiple of 64

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BatchSource:
    """The rows of a micro-batch, and the position of its batch in the epoch.

    Attributes:
        rows: The rows of this micro-batch in this process.
        batch_rows: The rows of the whole batch.
        idle: Whether all rows went to other processes; the one row here is then not counted.
        last: Whether this is the last micro-batch of its batch.
        next_epoch, next_batch: The position of the next batch.
    """

    epoch: int
    batch: int
    rows: RowNumbers
    batch_rows: RowNumbers
    idle: bool
    last: bool
    next_epoch: int
    next_batch: int


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """A batch, or a micro-batch of one, ready for a step.

    Attributes:
        tokens: Number of tokens, without padding.
        fixed_shape: Whether it is padded to the common shape; such a batch is in pinned CPU memory,
            others are on the device.
    """

    source: BatchSource
    batch: SomeBatch
    tokens: int
    fixed_shape: bool


def training_batches(
    task: Task,
    setup: TrainSetup,
    epoch: int,
    batch: int,
    micro_batches: int = 1,
    shape: Shape | None = None,
) -> Generator[TrainingBatch, None, None]:
    """An endless stream of training batches, starting from the given one.

    Args:
        micro_batches: How many micro-batches each batch is split into.
        shape: The shape that batches are padded to if they fit.
    """
    sources = batch_sources(task, setup, epoch, batch, micro_batches)
    return ahead(lambda source: load_batch(task, setup, source, shape), sources, setup.data.workers)


def load_batch(
    task: Task, setup: TrainSetup, source: BatchSource, shape: Shape | None
) -> TrainingBatch:
    """Build one batch, padded to the shape if it fits."""
    batch: SomeBatch = task.batch("train", source.rows, source.epoch)
    if shape is not None and isinstance(batch, ShapedBatch) and fits(batch.sizes, shape):
        return TrainingBatch(source, pinned(batch.filled(shape)), batch.tokens, fixed_shape=True)
    return TrainingBatch(source, batch.to(setup.machine.device), batch.tokens, fixed_shape=False)


def common_shape(task: Task, setup: TrainSetup, micro_batches: int = 1) -> Shape | None:
    """A shape that nearly all batches fit into, from a sample; None if they cannot be padded.

    A size that varies is given some slack.
    """
    sources = islice(batch_sources(task, setup, 0, 0, micro_batches), SAMPLED)
    sample = [source.rows for source in sources]
    longest = np.argsort(task.lengths("train"))[-LONGEST_ROWS:]
    sizes = []
    for rows in (*sample, *longest[:, None]):
        batch = task.batch("train", rows, 0)
        if not isinstance(batch, ShapedBatch) or not batch.sizes:
            return None
        sizes.append(batch.sizes)
    largest = np.max(sizes, axis=0)
    varies = np.min(sizes[: len(sample)], axis=0) < largest
    return tuple(
        with_slack(size) if more else size
        for size, more in zip(largest.tolist(), varies.tolist(), strict=True)
    )


def first_fitting(task: Task, setup: TrainSetup, micro_batches: int, shape: Shape) -> TrainingBatch:
    """The first training batch that fits into a shape."""
    sources = batch_sources(task, setup, 0, 0, micro_batches)
    batches = (load_batch(task, setup, source, shape) for source in sources)
    return next(batch for batch in batches if batch.fixed_shape)


def with_slack(size: int) -> int:
    """A size with some slack, rounded up.

    >>> with_slack(1000), with_slack(0)
    (1088, 0)
    """
    return -(-(size + size // SLACK) // MULTIPLE) * MULTIPLE


def fits(sizes: Shape, shape: Shape) -> bool:
    """Whether a batch of these sizes can be padded to a shape."""
    return all(size <= limit for size, limit in zip(sizes, shape, strict=True))


def pinned(batch: SomeBatch) -> SomeBatch:
    """The batch in pinned memory, which a GPU can copy from while it computes."""
    if not torch.cuda.is_available():
        return batch
    return cast(SomeBatch, tree_map_only(torch.Tensor, torch.Tensor.pin_memory, batch))


def evaluation_batches(
    task: Task, setup: TrainSetup, split: str, micro_batches: int = 1, max_rows: int | None = None
) -> Generator[SomeBatch, None, None]:
    """The rows of a split, each once, with no randomness.

    Args:
        max_rows: Sample at most this many rows, the same every time.
    """
    batches = evaluation_rows(task, setup, split, micro_batches, max_rows)
    return load_for_evaluation(task, setup, split, batches)


def evaluation_rows(
    task: Task, setup: TrainSetup, split: str, micro_batches: int = 1, max_rows: int | None = None
) -> list[RowNumbers]:
    """The row numbers of each of these batches."""
    lengths, device = task.lengths(split), setup.machine.device
    if not len(lengths):
        raise GlassformerError(f"the {split} split has no rows; add some")
    larger = LARGER_ON_GPU if device.type == "cuda" else 1
    budget = max(1, larger * setup.data.batch_tokens // micro_batches)
    sample = sample_rows(len(lengths), max_rows)
    batches = ordered_batches(lengths[sample], budget, padded=task.padded)
    return [sample[rows] for rows in batches]


def load_for_evaluation(
    task: Task, setup: TrainSetup, split: str, batches: Sequence[RowNumbers]
) -> Generator[SomeBatch, None, None]:
    """Batches of these rows, prepared ahead."""
    device = setup.machine.device
    return ahead(
        lambda rows: task.batch(split, rows, None).to(device), iter(batches), setup.data.workers
    )


def sample_rows(count: int, max_rows: int | None) -> RowNumbers:
    """All row numbers below a count, or a random sample of them, the same every time."""
    if max_rows is None or max_rows >= count:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:max_rows])


def batch_sources(
    task: Task, setup: TrainSetup, epoch: int, batch: int, micro_batches: int = 1
) -> Iterator[BatchSource]:
    """An endless stream of what to load in this process, starting from the given batch."""
    while True:
        batches = one_epoch(task, setup, epoch)
        if not batches:
            raise GlassformerError("the training split has no rows; add some")
        for at in range(batch, len(batches)):
            epoch_ends = at + 1 == len(batches)
            chunks = split_batch(
                batches[at], micro_batches, processes.world_size(), processes.rank()
            )
            for number, rows in enumerate(chunks):
                yield BatchSource(
                    epoch=epoch,
                    batch=at,
                    rows=rows if len(rows) else batches[at][:1],
                    batch_rows=batches[at],
                    idle=not len(rows),
                    last=number + 1 == len(chunks),
                    next_epoch=epoch + epoch_ends,
                    next_batch=0 if epoch_ends else at + 1,
                )
        epoch, batch = epoch + 1, 0


def split_batch(
    rows: RowNumbers, micro_batches: int, world_size: int, rank: int
) -> list[RowNumbers]:
    """The micro-batches of a batch for one process; every process gets the same number.

    >>> import numpy as np
    >>> [chunk.tolist() for chunk in split_batch(np.arange(5), 2, world_size=2, rank=1)]
    [[1], [3]]
    """
    chunks = dealt(rows, world_size * micro_batches)
    starts = range(0, len(chunks), world_size)
    return [chunks[start + rank] for start in starts if len(chunks[start])]


def one_epoch(task: Task, setup: TrainSetup, epoch: int) -> list[RowNumbers]:
    """The rows of each batch of an epoch."""
    packed = setup.machine.device.type == "cuda" and task.mixes_lengths
    return epoch_batches(
        task.lengths("train"),
        setup.data.batch_tokens,
        padded=task.padded,
        mixed=packed or not setup.data.by_length,
        seed=setup.seed,
        epoch=epoch,
    )
