"""The most memory a piece of work holds at any moment, above what was there before.

On CUDA, PyTorch's allocator keeps the count. On a CPU nobody does, so on Linux the kernel is asked:

    malloc_trim(0)                gives back what earlier work has freed, or it would be used again
    "5" > /proc/self/clear_refs   sets the high-water mark (VmHWM) to what is resident now (VmRSS)
    VmHWM - VmRSS before          is what the work added at its peak

Meanwhile the C library is told to take every larger block from the system and to give it back at
once. Otherwise it keeps what is freed for later, and the mark counts that too: a third to twice more
where it was tried. What is counted is pages written to, of the whole process: differences below a
megabyte mean nothing. Where all this is not permitted, or not Linux, the answer is None.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from glassformer.benchmarks.timing import Work

PROCESS = Path("/proc/self")

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # as malloc.h calls its settings M_...
SMALL = 64 * 1024
USUAL = 32 * 1024 * 1024  # where glibc's own threshold settles in a process with large blocks


def peak_memory(work: Work, device: torch.device) -> int | None:
    """Bytes, those of the answer included. Run the work once before, so that it is warm."""
    if device.type == "cuda":
        return peak_on_cuda(work, device)
    return peak_on_linux(work) if device.type == "cpu" and sys.platform == "linux" else None


def peak_on_cuda(work: Work, device: torch.device) -> int:
    """By PyTorch's own count of what its allocator gave out."""
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    work()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def peak_on_linux(work: Work) -> int | None:
    """By the kernel's high-water mark; None where it may not be set."""
    try:
        with given_back_at_once():
            (PROCESS / "clear_refs").write_text("5")
            before = resident("VmRSS")
            work()
            return max(0, resident("VmHWM") - before)
    except (OSError, AttributeError):  # not permitted; a C library that is not glibc
        return None


@contextmanager
def given_back_at_once() -> Iterator[None]:
    """Blocks come from the system and go back to it, those freed before included."""
    library = ctypes.CDLL(None)
    library.mallopt(MMAP_THRESHOLD, SMALL)
    library.malloc_trim(0)
    try:
        yield
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
