"""Batches: which rows form a batch, and the random numbers of each row.

Rows of similar length go together, up to a budget of tokens. The content of batch n, and all
randomness in it, is a function of (seed, epoch, row): any number of workers and processes gives the
same, and training can resume at any batch immediately.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from glassformer.data.jagged import places_in_rows

Lengths = Int[np.ndarray, " rows"]
RowNumbers = Int[np.ndarray, " _"]  # no name: a list of them has rows of different numbers
Job = TypeVar("Job")
Made = TypeVar("Made")

POOL = 64  # batches sorted by length together: enough for tight rows, few enough to stay mixed
SALTS = {"order": 1, "row": 2, "noise": 3}

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ROUNDS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


def epoch_batches(
    lengths: Lengths, budget: int, *, padded: bool, seed: int, epoch: int, mixed: bool = False
) -> list[RowNumbers]:
    """The rows of each batch of an epoch: shuffled, with similar lengths per batch unless mixed."""
    if not len(lengths):
        return []
    rng = np.random.default_rng([SALTS["order"], seed, epoch])
    order = rng.permutation(len(lengths))
    if mixed:
        return _cut(order, lengths, budget, padded)
    pool = max(1, round(POOL * budget / max(1.0, float(lengths.mean()))))
    batches = [
        batch
        for start in range(0, len(order), pool)
        for batch in _cut(_sorted(order[start : start + pool], lengths), lengths, budget, padded)
    ]
    return [batches[n] for n in rng.permutation(len(batches))]


def ordered_batches(lengths: Lengths, budget: int, *, padded: bool) -> list[RowNumbers]:
    """Batches of every row once, from short to long, for evaluation."""
    return _cut(_sorted(np.arange(len(lengths)), lengths), lengths, budget, padded)


def row_rng(seed: int, epoch: int, row: int) -> np.random.Generator:
    """The random generator of one row in one epoch."""
    return np.random.default_rng([SALTS["row"], seed, epoch, row])


def row_noise(
    seed: int, epoch: int, rows: RowNumbers, lengths: Lengths, *, stream: int = 0
) -> Float[np.ndarray, " places"]:
    """A uniform number in [0, 1) for every place of every row, whatever batch the row is in.

    Each is a hash of its place: one round of splitmix64 (Steele et al., 2014) for each coordinate.

    Args:
        lengths: How many numbers each row gets.
        stream: Another one gives other numbers.
    """
    keys = np.zeros(1, dtype=np.uint64)
    for coordinate in ([SALTS["noise"]], [stream], [seed], [epoch], rows):
        keys = _mixed(keys, np.asarray(coordinate))
    bits = _mixed(np.repeat(keys, lengths), places_in_rows(lengths))
    return (bits >> 11) * 2.0**-53  # as many bits as a float64 holds


def dealt(rows: RowNumbers, processes: int) -> list[RowNumbers]:
    """The rows of a batch, dealt out like cards: as each batch is sorted by length, evenly."""
    return [rows[process::processes] for process in range(processes)]


def ahead(
    make: Callable[[Job], Made], jobs: Iterable[Job], workers: int
) -> Generator[Made, None, None]:
    """Yield `make(job)` for each job, in order, prepared by threads while the caller works.

    The threads end when it is exhausted or closed.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="batches")
    waiting: deque[Future[Made]] = deque()
    try:
        for job in jobs:
            waiting.append(pool.submit(make, job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _sorted(rows: RowNumbers, lengths: Lengths) -> RowNumbers:
    return rows[np.argsort(lengths[rows], kind="stable")]


def _cut(rows: RowNumbers, lengths: Lengths, budget: int, padded: bool) -> list[RowNumbers]:
    """Consecutive rows, as many as the budget holds; a longer row gets its own batch."""
    own = lengths[rows]
    ends = np.cumsum(own)
    batches, start = [], 0
    while start < len(rows):
        if padded:
            fitting = _fitting_padded(own[start:], budget)
        else:
            most = ends[start] - own[start] + budget
            fitting = int(np.searchsorted(ends, most, side="right")) - start
        stop = start + max(1, fitting)
        batches.append(rows[start:stop])
        start = stop
    return batches


def _fitting_padded(lengths: Lengths, budget: int) -> int:
    """How many of the first rows fit the budget when all are as wide as the longest."""
    most = budget // max(1, int(lengths[0])) + 1
    width = np.maximum.accumulate(lengths[:most])
    return int(np.count_nonzero(width * np.arange(1, len(width) + 1) <= budget))


def _mixed(keys: NDArray[np.uint64], number: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The `number`-th output of a splitmix64 generator that starts from each key."""
    bits = keys + (number.astype(np.uint64) + np.uint64(1)) * GOLDEN
    for shift, factor in ROUNDS:
        bits = (bits ^ (bits >> shift)) * factor
    return bits ^ (bits >> np.uint64(31))
