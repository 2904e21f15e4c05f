"""A run that only one process may train at a time."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from glassformer import processes
from glassformer.errors import GlassformerError
from glassformer.files import fcntl, locked


@contextmanager
def held(place: Path) -> Iterator[None]:
    """Hold a run while it is trained: a second process is refused, a killed one lets go."""
    with ExitStack() as stack:
        if processes.is_first():
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


def is_held(place: Path) -> bool:
    """Whether some process trains a run; False, too, where nobody can tell."""
    if fcntl is None:
        return False
    try:
        with (place / ".lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
