"""Plain text as documents: a file is one, read in sections, so that it may be of any size.

Its lines end as those of prompts do, whatever ends them in the file. Its last part is held out,
unless there are so many files that some of them are.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from glassformer.data.rows import CONTINUED, Row
from glassformer.data.sources.decoding import check_codec, lines
from glassformer.data.sources.files import kind_of, names_in
from glassformer.data.sources.formats import is_table, read_file
from glassformer.data.splitter import ENOUGH_GROUPS
from glassformer.errors import GlassformerError

JOB = "generate"
SECTION = 16_384  # characters, to the end of the line
PIECES = 100  # a line that is longer than this part of its file may be split between two splits
DEEPEST = 20  # folders inside each other; more is a link to a parent


def read_documents(
    path: Path, encoding: str | None, shares: Mapping[str, float], header: bool | None = None
) -> Iterator[Row] | None:
    """The sections of a text file, or of all in a folder; None for a table.

    Args:
        shares: Split to the share of each file that it gets, from the end.
        header: Whether the first row of a table in a folder names its columns, if it is known.
    """
    if encoding is not None:
        check_codec(encoding)
    if kind_of(path) == "file":
        return None if is_table(path) else read_sections(path, encoding, shares)
    every = files_in(path, with_empty=True)
    files = [file for file in every if file.stat().st_size]
    tables = [file for file in files if is_table(file)]
    if not files:
        raise GlassformerError(f"{path}: no text in this folder; put text files or tables into it")
    if not tables:
        return chain.from_iterable(
            read_sections(file, encoding, shares) if file.stat().st_size else [empty(file)]
            for file in every
        )
    if len(tables) < len(files):
        other = next(file for file in files if not is_table(file))
        raise GlassformerError(
            f"{path}: mixes tables such as {tables[0].name} with other files such as "
            f"{other.name}; name the tables themselves, or keep one kind in the folder"
        )
    return chain.from_iterable(read_file(file, encoding, header=header) for file in tables)


def are_many(names: Iterable[str]) -> bool:
    """Whether there are so many text files, in folders or not, that whole ones are held out."""
    paths = (Path(name) for name in names if Path(name).exists())
    files = chain.from_iterable(map(files_in, paths))
    texts = islice((file for file in files if not is_table(file)), ENOUGH_GROUPS)
    return len(list(texts)) == ENOUGH_GROUPS


def files_in(folder: Path, depth: int = 0, *, with_empty: bool = False) -> list[Path]:
    """The files in a folder and the folders inside it, sorted, without hidden ones.

    A file is itself.
    """
    if kind_of(folder) == "file":
        return [folder]
    if depth > DEEPEST:
        raise GlassformerError(f"{folder}: nested too deeply; remove the link to a parent folder")
    found = []
    for name in names_in(folder):
        path = folder / name
        if kind_of(path) == "folder":
            found += files_in(path, depth + 1, with_empty=with_empty)
        elif with_empty or path.stat().st_size:
            found.append(path)
    return found


def empty(path: Path) -> Row:
    """A file without text, as a row that is left out and counted."""
    return Row({"file": str(path), "text": ""}, str(path), 1)


def read_sections(path: Path, encoding: str | None, shares: Mapping[str, float]) -> Iterator[Row]:
    """The sections of a text file, each with the number of its first line."""
    values, longest, rest = {"file": str(path)}, SECTION, list[tuple[float, str]]()
    if any(shares.values()):
        total = length_of(path, encoding)
        rest, longest = places_of(shares, total), min(SECTION, max(1, total // PIECES))
        values |= {"split": "train"}
    section, size, at, number, blank = list[str](), 0, 0, 1, True
    for count, line in pieces(path, encoding, longest):
        if not line.isspace():  # so that no section is blank
            if not blank and (size >= SECTION or (rest and at >= rest[0][0])):
                text = {"text": "".join(section), CONTINUED: "yes"}
                yield Row(values | text, str(path), number)
                section, size, number = [], 0, count
            while rest and at >= rest[0][0]:
                values = values | {"split": rest.pop(0)[1]}
            blank = False
        section.append(line)
        size, at = size + len(line), at + len(line)
    yield Row(values | {"text": "".join(section)}, str(path), number)


def length_of(path: Path, encoding: str | None) -> int:
    """The characters of a file up to the last that is not blank."""
    length = read = 0
    for line in lines(path, encoding, newline=None, job=JOB):
        length = length if line.isspace() else read + len(line.rstrip())
        read += len(line)
    return length


def pieces(path: Path, encoding: str | None, longest: int) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers; longer ones come in pieces."""
    for number, line in enumerate(lines(path, encoding, newline=None, job=JOB), start=1):
        for start in range(0, len(line), longest):
            yield number, line[start : start + longest]


def places_of(shares: Mapping[str, float], characters: int) -> list[tuple[float, str]]:
    """Where each held-out split begins: together they are the end of a text."""
    left, places = 1.0 - sum(shares.values()), []
    for split, share in shares.items():
        places.append((left * characters, split))
        left += share
    return [place for place, share in zip(places, shares.values(), strict=True) if share]
