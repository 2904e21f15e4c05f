"""Problems of text files themselves: a legacy encoding, or a row mistaken for a header."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from glassformer.data.columns import is_known_name
from glassformer.data.doctor.check import SHOWN, Finding
from glassformer.data.rows import listed
from glassformer.data.sources.decoding import (
    LINE_BY_LINE,
    codec_of,
    first_bad_byte,
    guess_encoding,
    lines_not_utf8,
)
from glassformer.data.sources.files import kind_of, names_in, opened, suffix_of
from glassformer.data.sources.formats import reader_of
from glassformer.data.sources.table import read_table
from glassformer.wording import counted


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of one or several files.

    Attributes:
        name: The encoding.
        bad: The first location that is not UTF-8, if the encoding had to be guessed.
        lines: The lines that are not UTF-8, by file, where others are.
    """

    name: str
    bad: str = ""
    lines: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def guess(self) -> str | None:
        """The encoding, if it is a guess."""
        return self.name if self.bad else None

    def findings(self, name: str) -> Iterator[Finding]:
        """Findings about the files of `name`."""
        if self.lines:
            places = [f"{file} line {n}" for file, numbers in self.lines.items() for n in numbers]
            what = f"{counted(len(places), 'line')} of {name} not in UTF-8, unlike the others"
            advice = "each was read in the encoding it looks like; convert them with --fix"
            yield Finding(
                "encoding", "error", what, advice, rows=tuple(places[:SHOWN]), total=len(places)
            )
        elif self.bad:
            what = f"{name} is not UTF-8; it looks like {self.name} and was read as such"
            advice = (
                f"train with --set data.encoding={self.name}, or convert it to UTF-8 with --fix"
            )
            yield Finding("encoding", "error", what, advice, rows=(self.bad,), total=1)


def encoding_of(files: Iterable[Path], given: str | None) -> Encoding:
    """The encoding of some files.

    Files that mix encodings, and files of which only some are UTF-8, are read line by line. Where
    no guess is possible (binary files) it stays UTF-8, and the reader refuses the file.
    """
    text_files = (file for file in files if suffix_of(file) != ".parquet")
    found = [encoding for file in text_files for encoding in _encodings(file, given)]
    names = {encoding.name for encoding in found}
    lines = {file: some for one in found for file, some in one.lines.items()}
    if len(names) == 1 and LINE_BY_LINE not in names:
        return replace(found[0], lines={})
    if lines and names - {one.name for one in found if one.bad} <= {"utf-8", "utf-8-sig"}:
        return Encoding(LINE_BY_LINE, next(iter(lines)), lines)
    return Encoding(" and ".join(sorted(names - {one.name for one in found if one.bad})) or "utf-8")


def _encodings(path: Path, given: str | None) -> Iterator[Encoding]:
    """The encoding of a file, if it holds more than ASCII."""
    with opened(path) as stream:
        codec = codec_of(path, stream.peek(), given)
    if codec not in ("utf-8", "utf-8-sig"):
        yield Encoding(codec)
        return
    numbers, some, mixed = lines_not_utf8(path)
    guess = guess_encoding(some) if numbers else None
    if guess is not None and not mixed and not first_bad_byte(path, guess):
        yield Encoding(guess, f"{path} line {numbers[0]}", {str(path): numbers})
    elif guess is not None:
        yield Encoding(LINE_BY_LINE, str(path), {str(path): numbers})
    elif numbers or mixed:
        yield Encoding(codec)


def files_of(path: Path) -> Iterator[Path]:
    """The files of a path, as the general readers see it; folders are searched two levels deep."""
    if kind_of(path) == "file":
        yield path
        return
    for name in names_in(path):
        inner = path / name
        if inner.is_dir():
            yield from (inner / deeper for deeper in names_in(inner) if (inner / deeper).is_file())
        else:
            yield inner


def is_text_table(path: Path) -> bool:
    """Whether a header is guessed for this file."""
    return path.is_file() and reader_of(path) is read_table


def header_findings(table: str, names: Sequence[str]) -> Iterator[Finding]:
    """A note if the row used as the header may be a data row."""
    numbered = [*names] == [str(place) for place in range(1, len(names) + 1)]
    if not numbered and not any(map(is_known_name, names)):
        what = f"the first row of {table} ({listed(names)}) was read as the column names"
        advice = "if it is a data row, read it as one with --header no"
        yield Finding("names of columns", "note", what, advice, total=1)
