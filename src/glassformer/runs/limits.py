"""What a machine can run out of: disk and memory. A person can do something about either."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError

from glassformer.errors import GlassformerError

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def within_limits(place: Path) -> Iterator[None]:
    """Say in one line that the disk or the memory was not enough."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise GlassformerError(
            f"{place}: does not fit the memory of the device; use a smaller --size, or smaller "
            f"batches with --set data.batch_tokens=..."
        ) from None
    except (OSError, SafetensorError) as error:
        is_full = getattr(error, "errno", None) in FULL or "No space left" in str(error)
        if not is_full:
            raise
        raise GlassformerError(
            f"{place}: no space is left on the disk; free some, then resume or train again, or "
            f"choose another place with --run"
        ) from None
