"""What a machine can run out of, and a run that only one process may train at a time."""

import errno
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from safetensors import SafetensorError

from glassformer import processes
from glassformer.errors import GlassformerError
from glassformer.files import locked
from glassformer.training.trouble import is_out_of_memory

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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


@contextmanager
def within_limits(place: Path) -> Iterator[None]:
    """Say in one line that the disk or the memory was not enough."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise too_large(place) from None
    except (OSError, SafetensorError) as error:
        said = str(error)
        is_full = getattr(error, "errno", None) in FULL
        is_full = is_full or "No space left" in said or "File too large" in said
        if not is_full:
            raise
        raise GlassformerError(
            f"{place}: no space is left on the disk; free some, then resume or train again, or "
            f"choose another place with --run"
        ) from None


def too_large(place: Path) -> GlassformerError:
    """For what does not fit."""
    return GlassformerError(
        f"{place}: does not fit the memory of the device; use a smaller --size, or smaller batches "
        f"with --set data.batch_tokens=..."
    )
