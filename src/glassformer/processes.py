"""The processes that train one model together, as `torchrun` starts them; usually there is one.

The first process creates folders, writes files and speaks; the others follow it. All of them make
the same steps, each with its share of every batch.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

LOST = ("gloo", "nccl", "connection", "broken pipe")  # as PyTorch's backends say it
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


def is_joined() -> bool:
    """Whether the processes have met."""
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()


def lost_another(error: BaseException) -> bool:
    """Whether an error says that another process is gone."""
    if world_size() == 1 or not isinstance(error, RuntimeError):
        return False
    return any(word in str(error).lower() for word in LOST)
