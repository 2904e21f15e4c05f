"""The most memory a piece of work holds at any moment, above what was there before.

On CUDA, PyTorch's allocator keeps the count. On a CPU nobody does, so on Linux the kernel is asked:

    malloc_trim(0)                gives back what earlier work has freed, or it would be used again
    "5" > /proc/self/clear_refs   sets the high-water mark (VmHWM) to what is resident now (VmRSS)
    VmHWM - VmRSS before          is what the work added at its peak

The mark would also count what the C library keeps for later after it is freed. So the work runs in
a thread of its own, whose part of the heap is empty, and meanwhile every block beyond a few pages
is taken from the system and given back at once. What is counted is pages written to, of the whole
process: differences below a megabyte mean nothing. Held against what PyTorch's profiler adds up, it
agrees that well, and also sees what libraries take for themselves, as the GRU's does. Where all
this is not permitted, or where there is no Linux, the answer is None.
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
USUAL = 32 * 1024 * 1024  # where glibc's own threshold settles in a process with large blocks


def peak_memory(work: Work, device: torch.device) -> int | None:
    """Bytes, those of the answer included."""
    if device.type == "cuda":
        return peak_on_cuda(work, device)
    return peak_on_linux(work) if device.type == "cpu" and sys.platform == "linux" else None


def peak_on_cuda(work: Work, device: torch.device) -> int:
    """By PyTorch's own count of what its allocator gave out."""
    work()  # what it sets up once, it sets up now
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
    """Set the mark to what is resident, do the work, and see how high it is then."""
    with no_collection(), given_back_at_once() as trim:
        work()  # what a thread sets up once, it sets up now
        trim(0)
        (PROCESS / "clear_refs").write_text("5")
        before = resident("VmRSS")
        work()
        return max(0, resident("VmHWM") - before)


@contextmanager
def given_back_at_once() -> Iterator[Callable[[int], object]]:
    """Larger blocks go straight back to the system; gives malloc_trim, for those freed before."""
    library = ctypes.CDLL(None)
    library.mallopt(MMAP_THRESHOLD, SMALL)
    library.mallopt(TRIM_THRESHOLD, SMALL)
    try:
        yield library.malloc_trim
    finally:
        library.mallopt(MMAP_THRESHOLD, USUAL)
        library.mallopt(TRIM_THRESHOLD, 2 * USUAL)


def resident(field: str) -> int:
    """A number of this process's status, in bytes."""
    for line in (PROCESS / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.removesuffix("kB")) * 1024
    raise OSError(f"{PROCESS / 'status'} has no {field}")
