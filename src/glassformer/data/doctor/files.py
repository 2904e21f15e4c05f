"""Problems of text files themselves: a legacy encoding, or a row mistaken for a header."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from glassformer.data.columns import is_known_name
from glassformer.data.doctor.check import Finding
from glassformer.data.rows import listed
from glassformer.data.sources.decoding import codec_of, first_bad_byte, guess_encoding
from glassformer.data.sources.files import kind_of, names_in, opened, suffix_of
from glassformer.data.sources.formats import reader_of
from glassformer.data.sources.table import read_table


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of one or several files.

    Attributes:
        name: The encoding.
        bad: The first location that is not UTF-8, if the encoding had to be guessed.
    """

    name: str
    bad: str = ""

    @property
    def guess(self) -> str | None:
        """The encoding, if it is a guess."""
        return self.name if self.bad else None

    def findings(self, name: str) -> Iterator[Finding]:
        """Findings about the files of `name`."""
        if self.bad:
            what = f"{name} is not UTF-8; it looks like {self.name} and was read as such"
            advice = (
                f"train with --set data.encoding={self.name}, or convert it to UTF-8 with --fix"
            )
            yield Finding("encoding", "error", what, advice, rows=(self.bad,), total=1)


def encoding_of(path: Path, given: str | None) -> Encoding:
    """The encoding of a file, or of all files in a folder.

    Where no guess is possible (binary files, mixed encodings) it stays UTF-8, and the reader
    refuses the file.
    """
    found = [encoding for file in _text_files(path) for encoding in _encodings(file, given)]
    names = {encoding.name for encoding in found}
    if len(names) == 1:
        return found[0]
    return Encoding(" and ".join(sorted(names - {one.name for one in found if one.bad})) or "utf-8")


def _encodings(path: Path, given: str | None) -> Iterator[Encoding]:
    """The encoding of a file, if it holds more than ASCII."""
    with opened(path) as stream:
        codec = codec_of(path, stream.peek(), given)
    if codec != "utf-8":
        yield Encoding(codec)
        return
    bad = first_bad_byte(path, codec)
    guess = guess_encoding(bad.rest) if bad and not bad.mixed else None
    if bad and guess is not None and not first_bad_byte(path, guess):
        yield Encoding(guess, f"{path} line {bad.line}")
    elif bad or first_bad_byte(path, "ascii"):
        yield Encoding("utf-8")


def _text_files(path: Path) -> Iterator[Path]:
    """The text files of a path; folders are searched two levels deep."""
    if kind_of(path) == "file":
        if suffix_of(path) != ".parquet":
            yield path
        return
    for name in names_in(path):
        inner = path / name
        if inner.is_dir():
            yield from (inner / deeper for deeper in names_in(inner) if (inner / deeper).is_file())
        elif suffix_of(inner) != ".parquet":
            yield inner


def is_text_table(path: Path) -> bool:
    """Whether a header is guessed for this file."""
    return path.is_file() and reader_of(path) is read_table


def header_findings(table: str, names: Sequence[str]) -> Iterator[Finding]:
    """A note if the row used as the header may be a data row."""
    numbered = [*names] == [str(place) for place in range(1, len(names) + 1)]
    if not numbered and not any(map(is_known_name, names)):
        what = f"the first row of {table} ({listed(names)}) was read as the column names"
        advice = "if it is a data row, add a row of column names above it"
        yield Finding("names of columns", "note", what, advice, total=1)
