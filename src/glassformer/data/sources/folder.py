"""Folders: one subfolder per label; or tables, one after the other; or one text per file."""

from collections.abc import Collection, Iterator
from pathlib import Path

from glassformer.data.rows import Row, as_text, listed
from glassformer.data.sources.decoding import document
from glassformer.data.sources.files import kind_of, names_in
from glassformer.data.sources.formats import is_table, read_file, read_json_lines, reader_named
from glassformer.errors import GlassformerError


def read_folder(
    folder: Path,
    encoding: str | None,
    *,
    header: bool | None = None,
    names: Collection[str] = (),
) -> Iterator[Row]:
    """The rows of a folder. Subfolders are labels; loose files next to them are ignored."""
    folders, files = _contents(folder)
    if folders:
        return _read_labels(folders, encoding)
    tables = [file for file in files if is_table(file)]
    if not tables:
        return _read_documents(files, encoding)
    if len(tables) == len(files):
        return _read_tables(tables, encoding, header, names)
    other = next(file for file in files if not is_table(file))
    raise GlassformerError(
        f"{folder}: mixes tables such as {tables[0].name} with other files such as {other.name}; "
        f"name the tables themselves, or keep one kind in the folder"
    )


def _contents(folder: Path) -> tuple[list[Path], list[Path]]:
    """The folders and files in a folder, sorted, without hidden ones.

    Only one level deep, so that a link to a parent cannot cause a loop. A pipe or a dangling link
    is refused, so that no data are silently skipped.
    """
    found: dict[str, list[Path]] = {"folder": [], "file": []}
    for name in names_in(folder):
        found[kind_of(folder / name)].append(folder / name)
    if not any(found.values()):
        raise GlassformerError(
            f"{folder}: the folder is empty; put a table, text files, or one folder per label "
            f"into it"
        )
    return found["folder"], found["file"]


def _read_labels(folders: list[Path], encoding: str | None) -> Iterator[Row]:
    """The texts of every label, label by label."""
    for folder in folders:
        label = as_text(folder.name)
        inner, files = _contents(folder)
        tables = [file for file in files if is_table(file)]
        if inner or tables:
            raise GlassformerError(
                f"{folder}: read as the texts of label {label!r}, but it contains "
                f"{(inner + tables)[0].name}; give this folder itself, or keep only texts in it"
            )
        for row in _read_documents(files, encoding):
            yield Row({**row.values, "label": label}, row.file, row.number, row.line)


def _read_documents(files: list[Path], encoding: str | None) -> Iterator[Row]:
    """One row per file."""
    for file in files:
        yield Row({"text": document(file, encoding)}, str(file), 1)


def _read_tables(
    files: list[Path], encoding: str | None, header: bool | None, names: Collection[str]
) -> Iterator[Row]:
    """The rows of several tables with the same columns. (JSON objects may omit some.)"""
    columns: list[str] | None = None
    for file in files:
        reader = reader_named(file)
        for row in read_file(file, encoding, header=header, names=names):
            if columns is None:
                columns = list(row.values)
            if row.number == 1 and reader is not read_json_lines and set(columns) != {*row.values}:
                raise GlassformerError(
                    f"{file}: has columns {listed(row.values)} but {files[0].name} has "
                    f"{listed(columns)}; tables in one folder must share their columns"
                )
            yield row
