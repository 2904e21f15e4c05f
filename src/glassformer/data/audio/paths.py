"""Recordings on disk: which files they are, and where a table says that they lie."""

from pathlib import Path

from glassformer.data.rows import Row
from glassformer.data.sources.files import names_in
from glassformer.errors import GlassformerError

SUFFIXES = {
    *(".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".sph", ".aif", ".aiff", ".au", ".caf"),
    *(".m4a", ".mp4", ".aac", ".webm", ".mka", ".mkv", ".mov", ".wma", ".amr", ".3gp"),
}


def is_recording(path: Path | str) -> bool:
    """Whether a file is a recording, by its suffix."""
    return Path(path).suffix.lower() in SUFFIXES


def located(row: Row, path: str) -> str:
    """A path in a row of a file, as seen from where the file lies; it may be one of Windows."""
    folder = Path(row.file).parent.absolute()
    unknown = "\\" in path and not (folder / path).exists()
    return str(folder / (path.replace("\\", "/") if unknown else path))


def recordings_in(folder: Path) -> list[Path]:
    """The recordings in a folder, sorted, with absolute paths."""
    return [_named(folder.absolute() / name) for name in names_in(folder) if is_recording(name)]


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, sorted."""
    return [_named(folder / name) for name in names_in(folder) if (folder / name).is_dir()]


def _named(path: Path) -> Path:
    """A path that can be written down."""
    if any("\ud800" <= character <= "\udfff" for character in path.name):
        raise GlassformerError(f"{path.parent}: the name {path.name!r} is not UTF-8; rename it")
    return path
