"""Where the files of named sets lie: under `$GLASSFORMER_DATA`, or in the user's cache.

Each set has a folder there, the same in both places. What is in it may be laid out in several
ways: as the set's makers publish it, or repacked.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from glassformer.errors import GlassformerError
from glassformer.files import cache_folder

FOLDER_VARIABLE = "GLASSFORMER_DATA"


@dataclass(frozen=True, kw_only=True, slots=True)
class Remote:
    """A file that can be downloaded.

    Args:
        name: What it is called in the folder of the set.
        size: Bytes.
        checksum: As "sha256:..." or "md5:...".
        verified: Whether we have held a file with this checksum in hand; others publish the rest.
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
        layouts: Names of files, several sets of them; any set will do. A file may be packed: what
            is called `train.en` may lie there as `train.en.gz`.
        remotes: What to download; together they make one of the layouts.
    """

    folder: str
    layouts: tuple[tuple[str, ...], ...]
    remotes: tuple[Remote, ...]

    def search(self) -> dict[str, Path] | None:
        """The files of the first layout that is whole, by name; None when none is."""
        for place in places():
            for layout in self.layouts:
                found = {name: _one_of(place / self.folder, name) for name in layout}
                whole = {name: path for name, path in found.items() if path is not None}
                if len(whole) == len(layout):
                    return whole
        return None

    def files(self, name: str) -> dict[str, Path]:
        """The same for the set of this name; where nothing is found, the words say what to do."""
        found = self.search()
        if found is None:
            root = os.environ.get(FOLDER_VARIABLE)
            where = Path(root) / self.folder if root else f"${FOLDER_VARIABLE}/{self.folder}"
            unset = "" if root else f" ({FOLDER_VARIABLE} is not set)"
            raise GlassformerError(
                f"{name}: not found in {where}{unset} or {self.home}; get it with `glassformer "
                f"data fetch {name}`, or put {self.wanted} into {where}"
            )
        return found

    @property
    def home(self) -> Path:
        """Where downloads go."""
        return cache_folder() / "data" / self.folder

    @property
    def wanted(self) -> str:
        """The files that make a set, in words."""
        return " or ".join(" and ".join(layout) for layout in self.layouts)


def places() -> list[Path]:
    """The folders in which sets have their folders, in the order they are looked into."""
    root = os.environ.get(FOLDER_VARIABLE)
    return [*([Path(root)] if root else []), cache_folder() / "data"]


def _one_of(folder: Path, name: str) -> Path | None:
    """The file of this name, as it is or packed."""
    return next((path for end in ("", ".gz") if (path := folder / f"{name}{end}").is_file()), None)
