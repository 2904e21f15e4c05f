"""Files that are whole: the old one or the new one is there, whatever happens meanwhile.

A folder may come from a stranger: nothing is written through a link that lies in it.
"""

import hashlib
import importlib.util
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

fcntl = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # which some systems do not have
PIECE = 2**20  # bytes hashed at once


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write to, which takes the name of `path` when all went well.

    Whatever wrote it, a file gets the permissions of any new one; a folder keeps those of `mkdir`.
    """
    half = path.with_name(f".{path.name}.new")
    remove(half)  # what a kill left there, or a link that leads elsewhere
    half.touch()
    mode = half.stat().st_mode
    half.unlink()
    try:
        yield half
        if not half.is_dir():
            half.chmod(mode)
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
    write_text(to_json(values, indent=1) + "\n", path)


def to_json(values: object, *, indent: int | None = None) -> str:
    """Text that any JSON reader takes.

    >>> print(to_json({"loss": float("nan"), "label": "é"}))
    {"loss": null, "label": "é"}
    """
    return json.dumps(plain(values), indent=indent, ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Dicts, lists, strings and finite numbers only: JSON has no NaN, and knows no numpy."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, str) or value is None:
        return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Sequence):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_arrays(path: Path) -> "dict[str, NDArray[Any]]":
    """The arrays of a safetensors file; refused if they do not fit into memory."""
    from safetensors.numpy import load_file

    if path.stat().st_size > physical_memory():  # a file may have gaps and hardly take any space
        raise ValueError("it is larger than the memory of this machine")
    try:
        return load_file(path)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # as the library calls too little memory
            raise
        raise ValueError("it does not fit into memory") from None


def physical_memory() -> float:
    """Bytes of memory of this machine; infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def read_json(path: Path) -> Any:
    """What a JSON file says; OSError or ValueError where it cannot be read."""
    if path.exists() and not path.is_file():  # a pipe would be waited for without end
        raise ValueError("not a file")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("nested too deep") from None


def checksum(path: Path) -> str:
    """By which a file that changed is known."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


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
