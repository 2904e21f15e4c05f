"""A run that only one process may train at a time, and that writes to no other place."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from glassformer import processes
from glassformer.errors import GlassformerError
from glassformer.files import NO_LINK, fcntl, locked

WRITTEN = ("checkpoints", "pretrain", "board")  # folders that training fills


@contextmanager
def held(place: Path) -> Iterator[None]:
    """Hold a run while it is trained: a second process is refused, a killed one lets go."""
    with ExitStack() as stack:
        if processes.is_first():
            refuse_links(place)
            try:
                stack.enter_context(locked(place, wait=False))
            except BlockingIOError:
                raise GlassformerError(
                    f"{place}: is being trained by another process; wait for it, or stop it first"
                ) from None
            except OSError as error:
                raise GlassformerError(
                    f"{place}: cannot be written to ({error.strerror}); copy the run to where you "
                    f"may write"
                ) from None
        yield


def refuse_links(place: Path) -> None:
    """Training must not write, or remove, where a link in the run's folder leads."""
    for path in (place / name for name in (".lock", *WRITTEN)):
        if path.is_symlink():
            raise GlassformerError(
                f"{path}: is a link, and training would write to where it leads; remove it, or "
                f"put what it leads to in its place"
            )


def is_held(place: Path) -> bool:
    """Whether some process trains a run; False, too, where nobody can tell."""
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
