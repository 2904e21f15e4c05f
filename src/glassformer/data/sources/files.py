"""A file as a stream of bytes, unpacked on the way; what cannot be one is refused in one line.

To read another packing, write a function from a path to a binary stream and list it in PACKINGS.
"""

import gzip
import io
import lzma
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from glassformer.errors import GlassformerError

BUFFER = 1 << 16  # bytes

MAGIC: dict[bytes, str] = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"%PDF-1.": "a PDF; export its text",
    b"PK\x03\x04": "a ZIP archive or an office document; unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old office document; save it as CSV or text",
    b"\x7fELF": "a program",
    b"\x1f\x8b": "a gzip file; let its name end in .gz",
    b"\xfd7zXZ": "an xz file; let its name end in .xz",
    b"\x28\xb5\x2f\xfd": "a zstd file; let its name end in .zst",
    b"BZh91AY&SY": "a bzip2 file; unpack it",
    b"PAR1\x15": "a Parquet file; let its name end in .parquet",
    b"SQLite format 3\0": "a database; export the table as CSV",
}


def kind_of(path: Path) -> str:
    """'file' or 'folder'; anything else, and nothing at all, is refused."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise _missing(path) from None
    except (OSError, ValueError) as error:
        raise GlassformerError(
            f"{path}: cannot be read ({reason(error)}); check the path and who may read it"
        ) from None
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    raise GlassformerError(
        f"{path}: a pipe, socket or device, which cannot be read twice; write its content to a file"
    )


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted, without the hidden ones."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith((".", "__")))
    except OSError as error:
        raise GlassformerError(
            f"{folder}: the folder cannot be opened ({reason(error)}); check who may read it"
        ) from None


def suffix_of(path: Path) -> str:
    """What says the format: the last suffix, before that of a packing.

    >>> suffix_of(Path("reviews.CSV.gz"))
    '.csv'
    """
    inner = path.with_suffix("") if packing_of(path) else path
    return inner.suffix.lower()


def packing_of(path: Path) -> str:
    """The suffix of a packing, or nothing."""
    suffix = path.suffix.lower()
    return suffix if suffix in PACKINGS else ""


@contextmanager
def opened(path: Path, *, binary: bool = False) -> Iterator[io.BufferedReader]:
    """The bytes of a file, unpacked. What goes wrong while they are read becomes one line.

    Args:
        binary: Whether the file may be something else than text.
    """
    packing = packing_of(path)
    try:
        with PACKINGS.get(packing, _plain)(path) as raw, io.BufferedReader(raw, BUFFER) as stream:
            if not binary:
                _refuse_known_binaries(path, stream.peek())
            yield stream
    except GlassformerError:
        raise
    except OSError as error:
        if packing and error.errno is None:
            raise _broken(path, error) from None
        raise GlassformerError(
            f"{path}: cannot be read ({reason(error)}); check the path and who may read it"
        ) from None
    except Exception as error:  # every unpacker has errors of its own
        if packing:
            raise _broken(path, error) from None
        raise


def reason(error: Exception) -> str:
    """What the system says, in a few words."""
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(words.split())


def _refuse_known_binaries(path: Path, head: bytes) -> None:
    for magic, words in MAGIC.items():
        if head.startswith(magic):
            what, _, remedy = words.partition("; ")
            raise GlassformerError(
                f"{path}: not text but {what}; {remedy or 'give a file of text or a table'}"
            )


def _missing(path: Path) -> GlassformerError:
    """The words for a path that leads nowhere, with the name beside it that is nearest."""
    folder = path.parent
    if path.is_symlink():
        return GlassformerError(f"{path}: a link to nothing; fix or remove it")
    if not folder.is_dir():
        return GlassformerError(f"{path}: not found, nor is its folder {folder}; check the path")
    try:
        near = get_close_matches(path.name, os.listdir(folder), n=1)
    except OSError:
        near = []
    hint = f"did you mean {str(folder / near[0])!r}?" if near else "check the path"
    return GlassformerError(f"{path}: not found; {hint}")


def _broken(path: Path, error: Exception) -> GlassformerError:
    return GlassformerError(
        f"{path}: the {packing_of(path)} packing is broken or cut short ({reason(error)}); "
        f"fetch or pack the file again"
    )


def _plain(path: Path) -> Any:
    return path.open("rb", buffering=0)


def _zstd(path: Path) -> Any:
    """Through the standard library from Python 3.14 on, through pyarrow before."""
    try:
        from compression import zstd  # type: ignore[import-not-found]
    except ImportError:
        pass
    else:
        return zstd.open(path)
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        raise GlassformerError(
            f"{path}: .zst needs pyarrow, which is not installed; "
            f"pip install 'glassformer[tables]', or unpack the file"
        ) from None
    return pyarrow.input_stream(str(path), compression="zstd")


PACKINGS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".zst": _zstd,
}
