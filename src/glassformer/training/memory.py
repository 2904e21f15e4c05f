"""Available memory and peak usage.

On CUDA, the numbers are those of PyTorch's allocator. On a CPU they are those of the whole process
as Linux reports them: the program, its libraries, and a heap that batches of many shapes fragment.
Such a heap grows with the logarithm of the steps, to several times what the tensors need;
`projected_peak` extrapolates that. Where nothing is measured, the answer is None.
"""

import ctypes
import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch

PROCESS = Path("/proc/self")
MACHINE = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")  # a container's own limit
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
_trim = getattr(_libc, "malloc_trim", None)
_set = getattr(_libc, "mallopt", None)
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the names of glibc's settings
GROWTH = 0.25  # of the heap at least, per e-fold of the steps; measured from 20 to 1,000 steps


def reset_peak(device: torch.device) -> None:
    """Reset the peak to what is in use now."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif device.type == "cpu":
        with suppress(OSError):  # not permitted everywhere; the peak then covers the whole process
            (PROCESS / "clear_refs").write_text("5")


def keep_heap(device: torch.device) -> None:
    """Have freed memory stay with the process until `trim_heap`.

    Otherwise glibc gives the gradients of a large table back after every step, and the kernel
    clears the same pages again for the next one: a tenth of the time of such a step.
    """
    if device.type == "cpu" and _set is not None:
        _set(MMAP_THRESHOLD, 1 << 25)  # the largest that there is; a setting ends its adaptation
        _set(TRIM_THRESHOLD, (1 << 31) - 1)


def trim_heap(device: torch.device) -> None:
    """Return unused heap memory to the system.

    Batches of many shapes fragment the heap, which grows to several times what is used.
    """
    if device.type == "cpu" and _trim is not None:
        _trim(0)


def peak(device: torch.device) -> int | None:
    """The most bytes in use since the last reset."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return read_bytes(PROCESS / "status", "VmHWM") if device.type == "cpu" else None


def in_use(device: torch.device) -> int | None:
    """Bytes in use now."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    return read_bytes(PROCESS / "status", "VmRSS") if device.type == "cpu" else None


def capacity(device: torch.device) -> int | None:
    """Bytes that this process can use in total: what it uses already, and what is free."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    free, own = read_bytes(MACHINE, "MemAvailable"), in_use(device)
    if free is None or own is None:
        return None
    limit, used = (read_number(GROUP / name) for name in ("memory.max", "memory.current"))
    if limit is not None and used is not None:
        free = min(free, limit - used)
    return own + max(0, free)


def projected_peak(device: torch.device, peaks: Mapping[int, int], fixed: int, steps: int) -> int:
    """The peak expected after all steps, from the peaks after some of them.

    Each e-fold of the steps adds as much as in the later half of the measured steps, and at least a
    share of the heap.

    Args:
        peaks: The measured peaks by number of steps.
        fixed: The part of the peak that does not grow, as it is not heap used by a step.

    >>> projected_peak(torch.device("cpu"), {20: 500}, fixed=400, steps=148)
    550
    """
    last = max(peaks)
    if device.type != "cpu":
        return peaks[last]
    half = min(step for step in peaks if 2 * step >= last)
    measured = (peaks[last] - peaks[half]) / math.log(last / half) if half < last else 0.0
    efold = max(measured, GROWTH * max(0, peaks[last] - fixed))
    return round(peaks[last] + efold * math.log(max(1.0, steps / last)))


def read_bytes(path: Path, field: str) -> int | None:
    """A field of one of the kernel's tables, in bytes; None if there is no such table."""
    try:
        for line in path.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.removesuffix("kB")) * 1024
    except OSError:
        pass
    return None


def read_number(path: Path) -> int | None:
    """The number in one of the kernel's files; None if it holds something else."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
