"""A file as a stream of bytes, decompressed on the fly; anything else is refused in one line.

To add a compression format, write a function from a path to a binary stream and list it in
PACKINGS.
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

from glassformer.errors import GlassformerError, install

BUFFER = 1 << 16  # bytes

MAGIC: dict[bytes, str] = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"%PDF-1.": "a PDF; export its text",
    b"PK\x03\x04": "a ZIP archive or an office document; unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old office document; save it as CSV or text",
    b"\x7fELF": "a program",
    b"\x1f\x8b": "a gzip file; give it the suffix .gz",
    b"\xfd7zXZ": "an xz file; give it the suffix .xz",
    b"\x28\xb5\x2f\xfd": "a zstd file; give it the suffix .zst",
    b"BZh91AY&SY": "a bzip2 file; unpack it",
    b"PAR1\x15": "a Parquet file; give it the suffix .parquet",
    b"SQLite format 3\0": "a database; export the table as CSV",
}

WORKBOOKS = {".xls", ".xlsx", ".xlsm", ".ods"}  # which may also be CSV, or markup, by mistake


def kind_of(path: Path) -> str:
    """'file' or 'folder'; anything else, or a missing path, is refused."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise _missing(path) from None
    except (OSError, ValueError) as error:
        raise GlassformerError(
            f"{path}: cannot be read ({reason(error)}); check the path and its permissions"
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
            f"{folder}: the folder cannot be opened ({reason(error)}); check its permissions"
        ) from None


def suffix_of(path: Path) -> str:
    """The suffix of the format, before that of a compression.

    >>> suffix_of(Path("reviews.CSV.gz"))
    '.csv'
    """
    inner = path.with_suffix("") if packing_of(path) else path
    return inner.suffix.lower()


def packing_of(path: Path) -> str:
    """The suffix of a compression, or empty."""
    suffix = path.suffix.lower()
    return suffix if suffix in PACKINGS else ""


@contextmanager
def opened(path: Path, *, binary: bool = False) -> Iterator[io.BufferedReader]:
    """The bytes of a file, decompressed. Errors while reading become one line.

    Args:
        binary: Whether the file may be something other than text.
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
            f"{path}: cannot be read ({reason(error)}); check the path and its permissions"
        ) from None
    except Exception as error:  # every decompressor has errors of its own
        if packing:
            raise _broken(path, error) from None
        raise


def reason(error: Exception) -> str:
    """The error of the system, on one line."""
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(words.split())


def _refuse_known_binaries(path: Path, head: bytes) -> None:
    markup = head.lstrip()[:1] == b"<"
    if path.suffix.lower() in WORKBOOKS and (
        markup or head.startswith((b"PK", b"\xd0\xcf\x11\xe0"))
    ):
        raise GlassformerError(
            f"{path}: a workbook, which is not read; open it in a spreadsheet program and save the "
            f"sheet as CSV"
        )
    for magic, words in MAGIC.items():
        if head.startswith(magic):
            what, _, remedy = words.partition("; ")
            raise GlassformerError(
                f"{path}: not text but {what}; {remedy or 'give a text file or a table'}"
            )


def _missing(path: Path) -> GlassformerError:
    """The error for a missing path, with the closest name in its folder."""
    folder = path.parent
    if path.is_symlink():
        return GlassformerError(f"{path}: a dangling link; fix or remove it")
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
        f"{path}: the {packing_of(path)} file is damaged or truncated ({reason(error)}); "
        f"fetch or compress it again"
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
            f"{install('tables')}, or decompress the file"
        ) from None
    return pyarrow.input_stream(str(path), compression="zstd")


PACKINGS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".zst": _zstd}
