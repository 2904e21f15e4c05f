"""Untrusted archives: no file outside the folder, no links, no decompression bombs."""

import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import IO

from glassformer.data.catalog.storage import writing
from glassformer.data.sources.files import reason
from glassformer.errors import GlassformerError
from glassformer.files import cache_folder

MOST_BYTES = 4 * 2**30  # of all members, unpacked
MOST_FILES = 500_000
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error),
    *(EOFError, OSError, ValueError),
)

Member = tuple[str, bytes]


def members(archive: Path, suffix: str = "") -> Iterator[Member]:
    """Names and contents of the files in a tar or zip whose names end in `suffix`, in order."""
    files = _in_zip(archive) if archive.suffix == ".zip" else _in_tar(archive)
    try:
        yield from ((name, stream.read()) for name, stream in files if name.endswith(suffix))
    except NotImplementedError as error:
        raise GlassformerError(
            f"{archive}: packed in a way that cannot be undone here ({reason(error)}); pack it "
            f"again with a usual program, or fetch another archive"
        ) from None
    except BROKEN as error:
        raise GlassformerError(
            f"{archive}: damaged or truncated ({reason(error)}); remove it and fetch it again"
        ) from None


def unpacked(archive: Path, suffix: str) -> Path:
    """A cache folder with the files of an archive that end in `suffix`; unpacked once."""
    seen = archive.stat()
    identity = f"{archive.resolve()}\n{seen.st_size}\n{seen.st_mtime_ns}\n{suffix}"
    mark = blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    folder = cache_folder() / "unpacked" / f"{archive.name}-{mark}"
    if not folder.is_dir():
        unpack(archive, folder, suffix)
    return folder


def unpack(archive: Path, folder: Path, suffix: str = "") -> None:
    """Unpack the files that end in `suffix`; the folder appears when it is complete."""
    half = folder.with_name(f".{folder.name}.new-{token_hex(4)}-{os.getpid()}")
    try:
        with writing(folder):
            half.mkdir(parents=True)
            for name, content in members(archive, suffix):
                (half / name).parent.mkdir(parents=True, exist_ok=True)
                (half / name).write_bytes(content)
            if not folder.is_dir():  # another process may have been faster
                half.rename(folder)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _in_tar(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(archive) as tar:
        allowance = _Allowance(archive)
        for member in tar:
            allowance.take(member.name, member.size)
            if member.isfile() and (stream := tar.extractfile(member)) is not None:
                yield member.name, stream
            elif not member.isdir():
                raise _refused(archive, member.name, "is a link or a device")


def _in_zip(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as packed:
        allowance = _Allowance(archive)
        for info in packed.infolist():
            allowance.take(info.filename, info.file_size)
            if stat.S_ISLNK(info.external_attr >> 16):
                raise _refused(archive, info.filename, "is a link")
            if info.flag_bits & 1:
                raise _refused(archive, info.filename, "is encrypted")
            if not info.is_dir():
                with packed.open(info) as stream:
                    yield info.filename, stream


class _Allowance:
    """How much may still be unpacked."""

    def __init__(self, archive: Path) -> None:
        self.archive, self.bytes, self.files = archive, MOST_BYTES, MOST_FILES

    def take(self, name: str, size: int) -> None:
        """Refuse a member outside the folder, or beyond the limits."""
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
            raise _refused(self.archive, name, "points outside the folder")
        self.bytes, self.files = self.bytes - size, self.files - 1
        if self.bytes < 0 or self.files < 0:
            raise _refused(
                self.archive, name, f"exceeds {MOST_BYTES:,} bytes or {MOST_FILES:,} files"
            )


def _refused(archive: Path, name: str, why: str) -> GlassformerError:
    return GlassformerError(
        f"{archive}: not unpacked, {name!r} in it {why}; fetch the archive again from its source"
    )
