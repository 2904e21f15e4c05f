"""Plain text: every line is a row with one column, `text`."""

from collections.abc import Iterator
from pathlib import Path

from glassformer.data.rows import Row
from glassformer.data.sources.decoding import lines


def read_plain(path: Path, encoding: str | None) -> Iterator[Row]:
    r"""One row per line; blank lines are skipped but counted, so that row and line numbers agree.

    Only \n ends a line: a stray \r must not misalign parallel files.
    """
    for number, line in enumerate(lines(path, encoding, newline="\n"), start=1):
        if line.strip():
            yield Row({"text": line.rstrip("\r\n")}, str(path), number)
