"""What the catalog knows of a named set, and where sets that are not on board lie."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from glassformer.data.rows import Row
from glassformer.errors import GlassformerError

FOLDER_VARIABLE = "GLASSFORMER_DATA"


@dataclass(frozen=True, slots=True)
class Entry:
    """A named set: what it is, whose it is, and its rows.

    Args:
        name: What a person types.
        what: One sentence.
        licence: Under which terms it may be used.
        source: Where it comes from.
        rows: Reads or makes the rows, anew at every call.
        group: The column of what must stay in one split, or None.
    """

    name: str
    what: str
    licence: str
    source: str
    rows: Callable[[], Iterator[Row]]
    group: str | None = None


def data_file(folder: str, name: str) -> Path:
    """The path of a file of a named set under `$GLASSFORMER_DATA`, which must be there."""
    root = os.environ.get(FOLDER_VARIABLE)
    if not root:
        raise GlassformerError(
            f"{folder} is not on board and {FOLDER_VARIABLE} is not set; "
            f"put its files into a folder {folder}/ and set {FOLDER_VARIABLE} to the folder above"
        )
    path = Path(root) / folder / name
    if not path.is_file():
        raise GlassformerError(
            f"{path}: not found; put {name} of {folder} there, or set {FOLDER_VARIABLE} to the "
            f"folder that holds {folder}/"
        )
    return path
