"""A full disk, too little memory or a lost folder during training, as one-line errors."""

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from glassformer.errors import GlassformerError, is_out_of_memory

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FULL_MESSAGES = ("No space left", "File too large", " requested and ")  # the last is numpy's


@contextmanager
def within_limits(place: Path) -> Iterator[None]:
    """Turn a full disk or too little memory into a one-line error."""
    advice = "free some, then resume or train again, or choose another folder with --run"
    try:
        with disk_space(f"{place}: no space left on the disk; {advice}"):
            yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise too_large(place) from None


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder, removed afterwards; a full disk becomes a one-line error."""
    where, advice = tempfile.gettempdir(), "free some, or set TMPDIR to a folder on another disk"
    with (
        disk_space(f"{where}: no space left for temporary files; {advice}"),
        tempfile.TemporaryDirectory(prefix="glassformer-") as scratch,
    ):
        yield Path(scratch)


@contextmanager
def disk_space(message: str) -> Iterator[None]:
    """Turn a full disk into this error."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        if not is_disk_full(error):
            raise
        raise GlassformerError(message) from None


def is_disk_full(error: Exception) -> bool:
    """Whether a file could not be written for lack of space."""
    if getattr(error, "errno", None) in FULL:
        return True
    return any(message in str(error) for message in FULL_MESSAGES)


@contextmanager
def folder_errors(place: Path) -> Iterator[None]:
    """Turn a lost run folder, or an unreadable file in it, into a one-line error."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        if not place.exists():
            raise GlassformerError(
                f"{place}: was removed or moved during training; put it back and resume it, "
                f"or train again"
            ) from None
        path = Path(str(error.filename)) if isinstance(error, OSError) else None
        if path is None or not path.is_relative_to(place):
            raise
        reason = getattr(error, "strerror", None) or error
        raise GlassformerError(
            f"{path}: cannot be read or written ({reason}); check the disk and its "
            f"permissions, then resume the run"
        ) from None


def too_large(place: Path) -> GlassformerError:
    """The error for a model or batch that does not fit."""
    return GlassformerError(
        f"{place}: does not fit in device memory; use a smaller --size, or smaller batches "
        f"with --set data.batch_tokens=..."
    )
