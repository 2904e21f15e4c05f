"""Fetching a named set: found locally, or downloaded into the cache and verified.

A download is a hidden `.part` file that is renamed when size and checksum match. It resumes after a
broken connection, in this call or a later one. One process downloads into a folder at a time;
another waits and then finds the files there.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from glassformer.data.catalog.storage import Entry, Remote, writing
from glassformer.data.catalog.transfer import BrokenTransferError, Seen, discard, receive
from glassformer.errors import GlassformerError
from glassformer.files import locked, sync

TRIES = 4  # consecutive attempts without progress
LONGEST_PAUSE = 30.0  # seconds

Pause = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The folder with the files of a set; None for a built-in set.

    Attributes:
        downloaded: Files that were downloaded; empty if all were found.
    """

    folder: Path | None
    downloaded: tuple[Remote, ...]

    @property
    def unchecked(self) -> list[str]:
        """Downloaded files without a known checksum."""
        return [remote.name for remote in self.downloaded if remote.checksum is None]


def fetch(entry: Entry, seen: Seen, *, pause: Pause = time.sleep) -> Fetched:
    """Find the files of a set, or download them."""
    if entry.storage is None:
        return Fetched(None, ())
    if (found := entry.storage.search()) is not None:
        return Fetched(next(iter(found.values())).parent, ())
    home = entry.storage.home
    for remote in entry.storage.remotes:
        fetch_file(remote, home / remote.name, seen, pause=pause)
    return Fetched(home, entry.storage.remotes)


def fetch_file(remote: Remote, target: Path, seen: Seen, *, pause: Pause = time.sleep) -> None:
    """Download one file, unless it exists."""
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with locked(target.parent, wait=True):
                if not target.exists():
                    part = target.with_name(f".{target.name}.part")
                    download(remote, part, seen, pause)
                    sync(part)
                    part.replace(target)
                    sync(target.parent)
                    discard(part)
        except GlassformerError as error:
            raise GlassformerError(
                f"{error}; download it by other means and save it as {target}"
            ) from None


def download(remote: Remote, part: Path, seen: Seen, pause: Pause) -> None:
    """Retry until the file is complete and correct, as long as attempts make progress."""
    furthest, failures, continued, restarted = size_of(part), 0, size_of(part) > 0, False
    while True:
        try:
            receive(remote, part, seen)
        except BrokenTransferError as broken:
            further = size_of(part) > furthest
            furthest, failures = max(furthest, size_of(part)), 0 if further else failures + 1
            if failures == TRIES:
                raise GlassformerError(
                    f"{remote.url}: gave up after {TRIES} attempts ({broken})"
                ) from None
            continued = True
            pause(min(2.0**failures, LONGEST_PAUSE))
            continue
        wrong = what_is_wrong(remote, part)
        if wrong is None:
            return
        discard(part)
        if restarted or not continued:
            raise GlassformerError(f"{remote.url}: {wrong}; discarded")
        furthest, restarted = 0, True  # perhaps pieces of two versions: restart once


def what_is_wrong(remote: Remote, part: Path) -> str | None:
    """How a file differs from the expected size or checksum."""
    size = size_of(part)
    if remote.size is not None and size != remote.size:
        return f"{size:,} bytes, expected {remote.size:,}"
    if remote.checksum is None:
        return None
    kind, _, expected = remote.checksum.partition(":")
    with part.open("rb") as file:
        found = file_digest(file, kind).hexdigest()
    return None if found == expected else f"its {kind} is {found}, expected {expected}"


def size_of(part: Path) -> int:
    """Bytes in a file; 0 if it does not exist."""
    return part.stat().st_size if part.exists() else 0
