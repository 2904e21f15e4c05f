"""How much memory there is, and the most that was held.

On CUDA, PyTorch's allocator keeps the count. On a CPU it is what the kernel says of the whole
process (Linux): the program, its libraries, and a heap that breaks up under batches of many shapes.
Such a heap grows with the logarithm of the steps, several times beyond what tensors need; `grown`
follows that. Where nobody counts, the answer is None.
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
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
GROWTH = 0.25  # of a heap at least, for each e-fold of the steps; measured from 20 to 1,000 steps


def forget_peak(device: torch.device) -> None:
    """Let the peak begin again at what is held now."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif device.type == "cpu":
        with suppress(OSError):  # not permitted everywhere; then the peak is that of all time
            (PROCESS / "clear_refs").write_text("5")


def tidy(device: torch.device) -> None:
    """Give back what a heap holds without need.

    Batches of many shapes break a heap up, and it grows to several times of what is used.
    """
    if device.type == "cpu" and _trim is not None:
        _trim(0)


def peak(device: torch.device) -> int | None:
    """The most bytes held since then."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return read_bytes(PROCESS / "status", "VmHWM") if device.type == "cpu" else None


def held(device: torch.device) -> int | None:
    """Bytes held now."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    return read_bytes(PROCESS / "status", "VmRSS") if device.type == "cpu" else None


def room(device: torch.device) -> int | None:
    """Bytes that this process may hold in all: what it has already, and what is free."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    free, ours = read_bytes(MACHINE, "MemAvailable"), held(device)
    if free is None or ours is None:
        return None
    limit, used = (read_number(GROUP / name) for name in ("memory.max", "memory.current"))
    if limit is not None and used is not None:
        free = min(free, limit - used)
    return ours + max(0, free)


def grown(device: torch.device, peaks: Mapping[int, int], fixed: int, steps: int) -> int:
    """The peak after all steps, from the peaks after some.

    Each e-fold of the steps adds what it added in the later half of those seen, and a share of the
    heap at least.

    Args:
        peaks: By steps taken.
        fixed: What of them is not the heap of a step, and does not grow.

    >>> grown(torch.device("cpu"), {20: 500}, fixed=400, steps=148)
    550
    """
    last = max(peaks)
    if device.type != "cpu":
        return peaks[last]
    half = min(step for step in peaks if 2 * step >= last)
    risen = (peaks[last] - peaks[half]) / math.log(last / half) if half < last else 0.0
    efold = max(risen, GROWTH * max(0, peaks[last] - fixed))
    return round(peaks[last] + efold * math.log(max(1.0, steps / last)))


def read_bytes(path: Path, field: str) -> int | None:
    """A number of one of the kernel's tables; None where there is no such table."""
    try:
        for line in path.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.removesuffix("kB")) * 1024
    except OSError:
        pass
    return None


def read_number(path: Path) -> int | None:
    """What one of the kernel's files says, if it is a number."""
    try:
        said = path.read_text().strip()
    except OSError:
        return None
    return int(said) if said.isdigit() else None
