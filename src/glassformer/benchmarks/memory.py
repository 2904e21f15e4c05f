"""The peak memory of a piece of work, above what was in use before.

On CUDA, PyTorch's allocator counts it. On a CPU under Linux the kernel does:

    malloc_trim(0)                returns memory freed by earlier work, which would be reused
    "5" > /proc/self/clear_refs   sets the high-water mark (VmHWM) to what is resident now (VmRSS)
    VmHWM - VmRSS before          is what the work added at its peak

The mark would also count memory that the C library keeps after it is freed. So the work runs in a
thread of its own, with an empty arena, and blocks beyond a few pages are allocated from the system
and returned immediately. It counts pages written by the whole process, so differences below a
megabyte mean nothing. It agrees that well with PyTorch's profiler, and also sees memory that
libraries allocate themselves, as the GRU's does. Where this is not permitted, or on other systems,
the result is None.
"""

import ctypes
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch

from glassformer.benchmarks.timing import Work, no_collection

PROCESS = Path("/proc/self")

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # as malloc.h calls its settings M_...
SMALL = 16 * 1024
GLIBC_DEFAULT = 32 * 1024 * 1024  # where glibc's own threshold settles with large blocks


def peak_memory(work: Work, device: torch.device) -> int | None:
    """Peak bytes, including the result; None if it cannot be measured."""
    if device.type == "cuda":
        return peak_on_cuda(work, device)
    return peak_on_linux(work) if device.type == "cpu" and sys.platform == "linux" else None


def peak_on_cuda(work: Work, device: torch.device) -> int:
    """By PyTorch's own count of what its allocator gave out."""
    work()  # warm-up
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    work()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def peak_on_linux(work: Work) -> int | None:
    """By the kernel's high-water mark; None where it may not be set."""
    if not may_set_the_mark():
        return None
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(rise_of_the_mark, work).result()


def may_set_the_mark() -> bool:
    """Whether the kernel permits it and the C library is glibc."""
    library = ctypes.CDLL(None)
    try:
        (PROCESS / "clear_refs").write_text("5")
        return bool(resident("VmRSS") and resident("VmHWM") and library.mallopt)
    except (OSError, AttributeError):
        return False


def rise_of_the_mark(work: Work) -> int:
    """Reset the mark, do the work, and read how far it rose."""
    with no_collection(), immediate_release() as trim:
        work()  # warm-up
        trim(0)
        (PROCESS / "clear_refs").write_text("5")
        before = resident("VmRSS")
        work()
        return max(0, resident("VmHWM") - before)


@contextmanager
def immediate_release() -> Iterator[Callable[[int], object]]:
    """Return larger blocks to the system immediately; yields malloc_trim."""
    library = ctypes.CDLL(None)
    library.mallopt(MMAP_THRESHOLD, SMALL)
    library.mallopt(TRIM_THRESHOLD, SMALL)
    try:
        yield library.malloc_trim
    finally:
        library.mallopt(MMAP_THRESHOLD, GLIBC_DEFAULT)
        library.mallopt(TRIM_THRESHOLD, 2 * GLIBC_DEFAULT)


def resident(field: str) -> int:
    """A number of this process's status, in bytes."""
    for line in (PROCESS / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.removesuffix("kB")) * 1024
    raise OSError(f"{PROCESS / 'status'} has no {field}")
