"""What a machine can run out of, or lose while a run is trained, said in one line."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from glassformer.errors import GlassformerError, is_out_of_memory

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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


@contextmanager
def kept_in(place: Path) -> Iterator[None]:
    """Say in one line that a run's folder went away, or that a file in it cannot be had."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        if not place.exists():
            raise GlassformerError(
                f"{place}: was removed or moved while it was trained; put it back and resume it, "
                f"or train again"
            ) from None
        path = Path(str(error.filename)) if isinstance(error, OSError) else None
        if path is None or not path.is_relative_to(place):
            raise
        reason = getattr(error, "strerror", None) or error
        raise GlassformerError(
            f"{path}: cannot be read or written ({reason}); check the disk and who may "
            f"write there, then resume the run"
        ) from None


def too_large(place: Path) -> GlassformerError:
    """For what does not fit."""
    return GlassformerError(
        f"{place}: does not fit the memory of the device; use a smaller --size, or smaller batches "
        f"with --set data.batch_tokens=..."
    )
