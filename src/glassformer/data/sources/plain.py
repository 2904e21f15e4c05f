"""Plain text: every line is a row with one column, `text`."""

from collections.abc import Iterator
from pathlib import Path

from glassformer.data.rows import Row
from glassformer.data.sources.decoding import LONGEST_LINE, lines
from glassformer.errors import GlassformerError


def read_plain(path: Path, encoding: str | None) -> Iterator[Row]:
    r"""One row per line; blank lines are skipped but counted, so that row and line numbers agree.

    Only \n ends a line: a stray \r must not misalign parallel files.
    """
    for number, line in enumerate(lines(path, encoding, newline="\n"), start=1):
        if len(line) > LONGEST_LINE:
            raise GlassformerError(
                f"{path} line {number}: longer than {LONGEST_LINE:,} characters; split it into "
                f"several lines, or put the file into a folder, where every file is one text"
            )
        if line.strip():
            yield Row({"text": line.rstrip("\r\n")}, str(path), number)
