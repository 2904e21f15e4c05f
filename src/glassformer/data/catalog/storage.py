"""What a named set is, and where its files are: under `$GLASSFORMER_DATA`, or in the cache.

Each set has the same folder name in both places. Its contents may have several layouts: as
published or repacked.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from glassformer.data.rows import Row
from glassformer.data.sources.files import reason
from glassformer.errors import GlassformerError
from glassformer.files import cache_folder

FOLDER_VARIABLE = "GLASSFORMER_DATA"
NAMED = 6  # files of a set that an error names


@dataclass(frozen=True, kw_only=True, slots=True)
class Remote:
    """A file that can be downloaded.

    Args:
        name: File name in the folder of the set.
        size: Bytes.
        checksum: As "sha256:..." or "md5:...".
        verified: Whether we have seen a file with this checksum; others are as published.
    """

    name: str
    url: str
    size: int | None = None
    checksum: str | None = None
    verified: bool = False


@dataclass(frozen=True, slots=True)
class Storage:
    """The folder of a set.

    Args:
        folder: Its name.
        layouts: Alternative lists of file names; any complete one will do. A file may be
            compressed: `train.en` may be stored as `train.en.gz`.
        remotes: Files to download; together they form one of the layouts.
    """

    folder: str
    layouts: tuple[tuple[str, ...], ...]
    remotes: tuple[Remote, ...]

    def search(self) -> dict[str, Path] | None:
        """The files of the first complete layout, by name; None if there is none."""
        for place in places():
            for layout in self.layouts:
                found = {name: _one_of(place / self.folder, name) for name in layout}
                present = {name: path for name, path in found.items() if path is not None}
                if len(present) == len(layout):
                    return present
        return None

    def files(self, name: str) -> dict[str, Path]:
        """The files of the set; if they are missing, the error says how to get them."""
        found = self.search()
        if found is None:
            root = os.environ.get(FOLDER_VARIABLE)
            where = Path(root) / self.folder if root else f"${FOLDER_VARIABLE}/{self.folder}"
            unset = "" if root else f" ({FOLDER_VARIABLE} is not set)"
            raise GlassformerError(
                f"{name}: not found in {where}{unset} or {self.home}; get it with `glassformer "
                f"data fetch {name}`, or put {self.expected} into {where}"
            )
        return found

    @property
    def home(self) -> Path:
        """Where downloads go."""
        return cache_folder() / "data" / self.folder

    @property
    def expected(self) -> str:
        """The files of a set, in words; of many, the first and how many more."""
        return ", or ".join(map(_in_words, self.layouts))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Refuse a cache that cannot be written to."""
    try:
        yield
    except OSError as error:
        raise GlassformerError(
            f"{path}: cannot be written ({reason(error)}); free some space, or set "
            f"XDG_CACHE_HOME to another folder"
        ) from None


def places() -> list[Path]:
    """The folders to search for sets, in order."""
    root = os.environ.get(FOLDER_VARIABLE)
    return [*([Path(root)] if root else []), cache_folder() / "data"]


def _in_words(names: Sequence[str]) -> str:
    *others, last = names
    if len(others) > NAMED:
        return f"{names[0]} and {len(others)} more files"
    return f"{', '.join(others)} and {last}" if others else last


def _one_of(folder: Path, name: str) -> Path | None:
    """The file of this name, plain or compressed."""
    return next((path for end in ("", ".gz") if (path := folder / f"{name}{end}").is_file()), None)


@dataclass(frozen=True, slots=True)
class Entry:
    """A named set.

    Args:
        name: As typed on the command line.
        what: One sentence.
        licence: The terms of use.
        source: The page of its authors.
        rows: Reads or generates the rows at every call.
        group: The column whose equal values must stay in one split, or None.
        storage: Where its files are stored and downloaded from; None for a built-in set.
    """

    name: str
    what: str
    licence: str
    source: str
    rows: Callable[[], Iterator[Row]]
    group: str | None = None
    storage: Storage | None = None
