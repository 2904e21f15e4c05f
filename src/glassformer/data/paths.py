"""Files that hold one sample each: those of a folder, and where a table says that they lie."""

from collections.abc import Container
from pathlib import Path

from glassformer.data.rows import Row
from glassformer.data.sources.files import names_in
from glassformer.errors import GlassformerError


def located(row: Row, path: str) -> str:
    """A path in a row of a file, as seen from where the file lies; it may be one of Windows."""
    folder = Path(row.file).parent.absolute()
    unknown = "\\" in path and not (folder / path).exists()
    return str(folder / (path.replace("\\", "/") if unknown else path))


def files_in(folder: Path, suffixes: Container[str]) -> list[Path]:
    """The files in a folder with one of these suffixes, sorted, with absolute paths."""
    names = (name for name in names_in(folder) if Path(name).suffix.lower() in suffixes)
    return [_named(folder.absolute() / name) for name in names]


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, sorted."""
    return [_named(folder / name) for name in names_in(folder) if (folder / name).is_dir()]


def _named(path: Path) -> Path:
    """A path that can be written down."""
    if any("\ud800" <= character <= "\udfff" for character in path.name):
        raise GlassformerError(f"{path.parent}: the name {path.name!r} is not UTF-8; rename it")
    return path
