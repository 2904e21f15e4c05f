"""Files that are whole: the old one or the new one is there, whatever happens meanwhile.

A folder may come from a stranger: nothing is written through a link that lies in it.
"""

import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

fcntl = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # which some systems do not have


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write to, which takes the name of `path` when all went well."""
    half = path.with_name(f".{path.name}.new")
    remove(half)  # what a kill left there, or a link that leads elsewhere
    try:
        yield half
        sync(half)
        half.replace(path)
        sync(path.parent)
    finally:
        remove(half)


def remove(path: Path) -> None:
    """A file, a folder with all in it, or a link but not its target; nothing if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_text(text: str, path: Path) -> None:
    """Text as UTF-8; what no file can hold becomes a question mark."""
    with replacing(path) as half, half.open("xb") as file:
        file.write(text.encode("utf-8", "replace"))


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


def send_nowhere(stream: Any) -> None:
    """From here on, what is written to a stream is dropped, whoever writes it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def locked(folder: Path, *, wait: bool) -> Iterator[None]:
    """Have a folder to oneself: another process waits, or is refused by BlockingIOError.

    A process that is killed lets go. Where the system has no such locks, nothing is held.
    """
    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
    with open(handle, "rb+") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def cache_folder() -> Path:
    """What can be fetched or made again lies here: `$XDG_CACHE_HOME` or `~/.cache`."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "glassformer"
