"""Batches: which rows form a batch, and the random generator of each row.

Rows of similar length go together, up to a budget of tokens. The content of batch n, and all
randomness in it, is a function of (seed, epoch, row): any number of workers and processes gives the
same, and training can resume at any batch immediately.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from jaxtyping import Int

Lengths = Int[np.ndarray, " rows"]
RowNumbers = Int[np.ndarray, " _"]  # no name: a list of them has rows of different numbers
Job = TypeVar("Job")
Made = TypeVar("Made")

POOL = 64  # batches sorted by length together: enough for tight rows, few enough to stay mixed
SALTS = {"order": 1, "row": 2}


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
    batches, start, tokens = [], 0, 0
    for at, length in enumerate(lengths[rows].tolist()):
        tokens = (at - start + 1) * length if padded else tokens + length
        if tokens > budget and at > start:
            batches.append(rows[start:at])
            start, tokens = at, length
    if len(rows):
        batches.append(rows[start:])
    return batches
