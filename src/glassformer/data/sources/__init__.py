"""Raw files as rows, streamed one by one, whatever the size of the file.

    .csv .tsv .tab            a table; delimiter and header are detected (see `table`)
    .jsonl .ndjson .json      one object per line
    .parquet                  a table, through pyarrow
    .tmx                      a translation memory, one column per language
    anything else             a table if its head looks like one (see `table`); otherwise plain
                              text: one row per line, column `text`
    a folder of folders       one label each: one row per file, columns `text` and `label`
    a folder of tables        their rows, one table after the other
    a folder of other files   one row per file, column `text`

All may be compressed: .gz, .xz, .zst. Two plain files may be read in parallel (see `parallel`). Any
problem with a file is one GlassformerError that names it, with the row or line.

    files                 a file as a stream of bytes, decompressed on the fly
    decoding              from bytes to text
    table, parquet, tmx   readers of one format each
    formats               the reader of every format; those of plain text and JSON Lines
    folder                the readers of folders

To add a format, write a file here with a reader from a path and an encoding to rows, and list its
suffix in SOURCES.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from glassformer.data.rows import Row
from glassformer.data.sources.decoding import check_codec
from glassformer.data.sources.files import kind_of
from glassformer.data.sources.folder import read_folder
from glassformer.data.sources.formats import SOURCES, read_file
from glassformer.errors import GlassformerError


def read_rows(
    path: Path,
    *,
    encoding: str | None = None,
    header: bool | None = None,
    names: Collection[str] = (),
) -> Iterator[Row]:
    """The rows of a file or a folder, in order.

    Args:
        encoding: Of text without a byte order mark; UTF-8 unless given.
        header, names: As for `read_table`.
    """
    if encoding is not None:
        check_codec(encoding)
    reader = read_folder if kind_of(path) == "folder" else read_file
    empty = True
    for row in reader(path, encoding, header=header, names=names):
        empty = False
        yield row
    if empty:
        raise GlassformerError(
            f"{path}: no rows, only blank lines; give a file with at least one row"
        )
