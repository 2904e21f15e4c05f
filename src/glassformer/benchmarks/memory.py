"""The peak memory of a piece of work, above what was in use before.

On CUDA, PyTorch's allocator counts it. On a CPU under Linux the kernel does, by the high-water mark
of the process (`training.memory`), which would also count memory that the C library keeps after it
is freed. So the work runs in a thread of its own, with an empty arena, and blocks beyond a few
pages are allocated from the system and returned immediately. Differences below a megabyte mean
nothing. It agrees that well with PyTorch's profiler, and also sees memory that libraries allocate
themselves, as the GRU's does. Where this is not permitted, or on other systems, the result is None.
"""

import ctypes
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

from glassformer.benchmarks.timing import Work, no_collection
from glassformer.training import memory

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # as malloc.h calls its settings M_...
SMALL = 16 * 1024
GLIBC_DEFAULT = 32 * 1024 * 1024  # where glibc's own threshold settles with large blocks


def peak_memory(work: Work, device: torch.device) -> int | None:
    """Peak bytes, including the result; None if it cannot be measured."""
    if device.type == "cuda":
        return rise_of_the_mark(work, device)
    if not os.access(memory.PROCESS / "clear_refs", os.W_OK):
        return None
    with no_collection(), immediate_release(), ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(rise_of_the_mark, work, device).result()


def rise_of_the_mark(work: Work, device: torch.device) -> int | None:
    """Reset the mark, do the work, and read how far it rose."""
    work()  # warm-up
    memory.trim_heap(device)
    memory.reset_peak(device)
    before = memory.in_use(device)
    work()
    peak = memory.peak(device)
    return None if before is None or peak is None else max(0, peak - before)


@contextmanager
def immediate_release() -> Iterator[None]:
    """Return larger blocks to the system immediately."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", lambda option, value: None)
    set_option(MMAP_THRESHOLD, SMALL)
    set_option(TRIM_THRESHOLD, SMALL)
    try:
        yield
    finally:
        set_option(MMAP_THRESHOLD, GLIBC_DEFAULT)
        set_option(TRIM_THRESHOLD, 2 * GLIBC_DEFAULT)
