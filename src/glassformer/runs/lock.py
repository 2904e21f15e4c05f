"""The lock of a run: only one process may train it at a time."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from glassformer import processes
from glassformer.errors import GlassformerError
from glassformer.files import NO_LINK, fcntl, locked

WRITTEN = ("checkpoints", "pretrain", "board")  # folders that training fills


@contextmanager
def run_lock(place: Path) -> Iterator[None]:
    """Lock a run while it is trained: a second process is refused, a killed one releases it."""
    with ExitStack() as stack:
        if processes.is_first():
            refuse_links(place)
            try:
                stack.enter_context(locked(place, wait=False))
            except BlockingIOError:
                raise GlassformerError(
                    f"{place}: is being trained by another process; wait for it or stop it"
                ) from None
            except OSError as error:
                raise GlassformerError(
                    f"{place}: cannot be written to ({error.strerror}); copy the run to a "
                    f"writable folder"
                ) from None
        yield


def refuse_links(place: Path) -> None:
    """Training must not write or delete through a symbolic link."""
    for path in (place / name for name in (".lock", *WRITTEN)):
        if path.is_symlink():
            raise GlassformerError(
                f"{path}: is a symbolic link, which training would write through; remove it, "
                f"or replace it with its target"
            )


def is_locked(place: Path) -> bool:
    """Whether a process is training the run; False if that cannot be determined."""
    if fcntl is None:
        return False
    try:
        handle = os.open(place / ".lock", os.O_RDONLY | os.O_NONBLOCK | NO_LINK)
        with open(handle, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
