"""Raw files as rows, streamed: the rows of a table pass one by one, whatever its size.

    .csv .tsv .tab            a table; delimiter and header are found out (see `table`)
    .jsonl .ndjson .json      an object a line
    .parquet                  a table, through pyarrow
    .tmx                      a translation memory, a column a language
    anything else             plain text: a row a line, column `text`
    a folder of folders       a label each: a row a file, columns `text` and `label`
    a folder of tables        their rows, one table after the other
    a folder of other files   a row a file, column `text`

All may be packed: .gz, .xz, .zst. Two plain files may be read side by side (see `parallel`).
Whatever is wrong with a file is one GlassformerError that names it, with the row or line. To add a
format, write a file here with a reader from a path and an encoding to rows, and list its suffix in
SOURCES.
"""

from collections.abc import Iterator
from pathlib import Path

from glassformer.data.rows import Row
from glassformer.data.sources.decoding import check_codec
from glassformer.data.sources.files import kind_of
from glassformer.data.sources.folder import read_folder
from glassformer.data.sources.formats import SOURCES, reader_of
from glassformer.errors import GlassformerError

__all__ = ["SOURCES", "read_rows"]


def read_rows(path: Path, *, encoding: str | None = None) -> Iterator[Row]:
    """The rows of a file or a folder, in order.

    Args:
        encoding: Of text without a byte order mark; UTF-8 unless given.
    """
    if encoding is not None:
        check_codec(encoding)
    reader = read_folder if kind_of(path) == "folder" else reader_of(path)
    empty = True
    for row in reader(path, encoding):
        empty = False
        yield row
    if empty:
        raise GlassformerError(
            f"{path}: no rows in it, only blanks; give one with at least one row"
        )
