"""The processes that train one model together, as `torchrun` starts them; usually there is one.

The first process creates folders, writes files and speaks; the others follow it. All of them make
the same steps, each with its share of every batch.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

LOST = ("gloo", "nccl", "connection", "broken pipe")  # as PyTorch's backends say it
_dealing = ""  # while rows are dealt out: whether any were gathered

PATIENCE = timedelta(hours=1)  # for the first process, while it reads data or scores


def world_size() -> int:
    """How many there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Which one this is, from 0."""
    return int(os.environ.get("RANK", "0"))


def local_rank() -> int:
    """Which one this is among those of this machine: the number of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def is_first() -> bool:
    """Whether this one writes and speaks."""
    return rank() == 0


def is_launched() -> bool:
    """Whether `torchrun` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@contextmanager
def joined() -> Iterator[None]:
    """Meet the others, if there are any, and part from them at the end."""
    if not is_launched() or is_joined():
        yield
        return
    import torch
    import torch.distributed as dist

    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank())
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()


def wait() -> None:
    """Until all are here."""
    broadcast("")


def broadcast(text: str) -> str:
    """What the first process says; the others' text is not heard."""
    if world_size() == 1 or not is_joined():
        return text
    import torch
    import torch.distributed as dist

    encoded = text.encode("utf-8", "surrogateescape")
    length = torch.tensor([len(encoded)])
    dist.broadcast(length, 0)
    letters = torch.zeros(int(length), dtype=torch.uint8)
    if is_first():
        letters.copy_(
            torch.frombuffer(bytearray(encoded), dtype=torch.uint8) if encoded else letters
        )
    dist.broadcast(letters, 0)
    return bytes(letters.tolist()).decode("utf-8", "surrogateescape")


def any_of(holds: bool) -> bool:
    """Whether it holds for one of them at least."""
    if world_size() == 1 or not is_joined():
        return holds
    import torch
    import torch.distributed as dist

    found = torch.tensor([int(holds)])
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return bool(found)


@contextmanager
def dealt_out() -> Iterator[None]:
    """Each process scores some of the rows; `gathered` or `gathered_rows` must bring them together.

    Without it, scores would silently be those of the first process's rows.
    """
    global _dealing
    _dealing = "nothing gathered"
    try:
        yield
        if _dealing == "nothing gathered":
            raise RuntimeError("score() must gather the rows of all processes; see processes.py")
    finally:
        _dealing = ""


def gathered(rows: "Tensor") -> "Tensor":
    """The rows of all processes, if they were dealt out; else these."""
    global _dealing
    if not _dealing:
        return rows
    import torch
    import torch.distributed as dist

    _dealing = "gathered"
    mine = rows.detach().cpu().contiguous()
    counts = [torch.zeros(1, dtype=torch.long) for _ in range(world_size())]
    dist.all_gather(counts, torch.tensor([len(mine)]))
    filled = mine.new_zeros(int(max(counts)), *mine.shape[1:])
    filled[: len(mine)] = mine
    parts = [torch.empty_like(filled) for _ in counts]
    dist.all_gather(parts, filled)
    return torch.cat([part[: int(count)] for part, count in zip(parts, counts, strict=True)])


def gathered_rows(rows: Sequence[Any]) -> list[Any]:
    """The same for rows of plain values, such as texts and numbers."""
    if not _dealing:
        return list(rows)
    import torch

    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode("ascii")
    every = gathered(torch.frombuffer(bytearray(lines), dtype=torch.uint8))
    return [json.loads(line) for line in bytes(every.tolist()).splitlines()]


def is_joined() -> bool:
    """Whether the processes have met."""
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()


def lost_another(error: BaseException) -> bool:
    """Whether an error says that another process is gone."""
    if world_size() == 1 or not isinstance(error, RuntimeError):
        return False
    return any(word in str(error).lower() for word in LOST)
