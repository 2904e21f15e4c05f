"""Files that are whole: the old one or the new one is there, whatever happens meanwhile."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write to, which takes the name of `path` when all went well."""
    half = path.with_name(f".{path.name}.new")
    try:
        yield half
        sync(half)
        half.replace(path)
        sync(path.parent)
    finally:
        half.unlink(missing_ok=True)


def write_text(text: str, path: Path) -> None:
    """Text as UTF-8; what no file can hold becomes a question mark."""
    with replacing(path) as half:
        half.write_bytes(text.encode("utf-8", "replace"))


def write_json(values: object, path: Path) -> None:
    """Plain values as JSON."""
    write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", path)


def sync(path: Path) -> None:
    """Wait until the disk has it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
