"""A cleaned copy: the rows that are kept, in UTF-8, in a new file; the original is only read.

A copy has the format of the original, where that is text:

    .csv .tsv .tab        a table with a header
    .txt and other text   one row per line; parallel files stay parallel
    whole texts           text files with all their lines, and folders of them
    all others            JSON Lines: folders, Parquet, sets of the catalog

Values are written as they were read, as text, with what the checks correct; every change is listed.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from glassformer import notebook
from glassformer.data.doctor.reading import Reading, Source
from glassformer.data.doctor.repairs import Change, Repairs
from glassformer.data.rows import CONTINUED, Row
from glassformer.data.sources.files import packing_of, reason, suffix_of
from glassformer.data.sources.formats import (
    SOURCES,
    Reader,
    read_json_lines,
    read_plain,
    reader_named,
    reader_of,
)
from glassformer.data.sources.table import read_table
from glassformer.errors import GlassformerError
from glassformer.files import replacing, sync
from glassformer.terminal import printable
from glassformer.wording import counted

MOST_HELD = 4096  # sections of a text; a longer one stays


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A cleaned copy.

    Attributes:
        files: The copies, each with its original.
        kept: Number of rows in them.
        dropped: Number of dropped rows, by reason.
        changes: Every change, in the order of the rows.
        noun: What a row is called.
    """

    files: Mapping[str, str]
    kept: int
    dropped: Mapping[str, int]
    changes: Sequence[Change] = ()
    noun: str = "row"

    def __repr__(self) -> str:
        return "\n".join(map(printable, self.lines))

    def _repr_html_(self) -> str:
        """The changes as a table."""
        changes = [(change.where, change.what) for change in self.changes]
        return notebook.paragraphs(self.lines) + notebook.table("Changes", changes)

    @property
    def lines(self) -> list[str]:
        """What was written, left out and kept."""
        wrote = [f"wrote {copy} in UTF-8, from {name}" for copy, name in self.files.items()]
        dropped = [f"left out: {counted(n, self.noun)}, {why}" for why, n in self.dropped.items()]
        return [*wrote, *dropped, f"kept: {counted(self.kept, self.noun)}"]

    def copies_of(self, names: Iterable[str]) -> list[str]:
        """The copies of some of the originals."""
        wanted = {str(Path(name)) for name in names} | {*names}
        return [copy for copy, original in self.files.items() if original in wanted]

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "files": dict(self.files),
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "changes": [asdict(change) for change in self.changes],
        }


def write_clean(
    reading: Reading, to_drop: Mapping[int, str], out: Path, repairs: Repairs
) -> Cleaned:
    """Copy all rows but those to drop: to a file, or to a folder with a file for each source."""
    single = names_a_file(out, reading.sources)
    refuse_target(out, reading.sources)
    files = {}
    names = iter([(out.name,)] if single else file_names(reading.sources))
    counts: Counter[str] = Counter()
    try:
        with replacing(out) as half:
            if not single:
                half.mkdir()
            for source, numbered in groupby(reading, key=lambda item: item[1]):
                own = next(names)
                originals = source.files if len(own) > 1 else (source.name,)
                for name, original in zip(own, originals, strict=True):
                    files[str(out if single else out / name)] = str(original)
                staying = _staying(numbered, to_drop, counts, repairs)
                places = [half] if single else [half / name for name in own]
                _write(places, Path(own[0]), source, staying)
    except OSError as error:
        raise GlassformerError(
            f"{out}: cannot be written ({reason(error)}); choose another path"
        ) from None
    kept = counts.pop("")
    noun = "text" if all(source.is_verbatim for source in reading.sources) else "row"
    return Cleaned(files, kept, dict(counts.most_common()), tuple(repairs.changes), noun)


def names_a_file(out: Path, sources: list[Source]) -> bool:
    """Whether the copy is one file; refused if its format cannot hold the data."""
    originals = [path for source in sources for path in source.files]
    endings = {suffix_of(path) for path in originals if not path.is_dir()} - {""}
    if not (suffix_of(out) in endings | {*SOURCES} or packing_of(out)):
        return False
    fitting, chosen = format_of(sources[0]), reader_named(out)
    if len(sources) > 1 or (len(originals) > 1 and chosen is not read_json_lines):
        raise GlassformerError(
            f"{out}: {len(originals)} files cannot be written to one; name a folder"
        )
    if chosen not in (fitting, read_json_lines) or packing_of(out):
        named = SUFFIXES[fitting]
        raise GlassformerError(
            f"{out}: a copy of {sources[0].name} cannot have this format; use the ending {named}"
        )
    return True


def refuse_target(out: Path, sources: list[Source]) -> None:
    """Refuse to overwrite anything, or to write into the original."""
    if out.exists() or out.is_symlink():
        raise GlassformerError(f"{out}: already exists; name a new path for the copy")
    if not out.absolute().parent.is_dir():
        raise GlassformerError(f"{out}: its folder does not exist; create it, or name another path")
    for source in sources:
        if Path(source.name).is_dir() and out.resolve().is_relative_to(Path(source.name).resolve()):
            raise GlassformerError(
                f"{out}: lies inside {source.name}, which is being copied; name another path"
            )


def format_of(source: Source) -> Reader:
    """The format of a copy: tables and lines are kept, anything else becomes JSON Lines."""
    path = Path(source.name)
    reader: Reader = read_json_lines
    if path.is_file() and (source.is_general or source.is_verbatim):
        reader = reader_of(path) if source.is_general else reader_named(path)
    return reader if reader in SUFFIXES else read_json_lines


def file_names(sources: list[Source]) -> list[tuple[str, ...]]:
    """Unique file names for the copy of each source: one, or two for parallel files."""
    found: list[tuple[str, ...]] = []
    for source in sources:
        names = tuple(_bare_name(path, source) for path in source.files)
        before = ["", f"{source.split}-"]
        before += [f"{source.split}-{number}-" for number in range(2, len(sources) + 2)]
        used = {name for some in found for name in some}
        candidates = (tuple(f"{prefix}{name}" for name in names) for prefix in before)
        found.append(next(some for some in candidates if not {*some} & used))
    return found


def _bare_name(path: Path, source: Source) -> str:
    """The name of a copy: that of the original, uncompressed, with the ending of its format."""
    name = path.with_suffix("").name if packing_of(path) else path.name
    if len(source.files) > 1 or source.is_verbatim:
        return name
    if format_of(source) is read_table and reader_named(Path(name)) is not read_table:
        return f"{Path(name).stem}.csv"  # a table by what it looks like
    if format_of(source) is not read_json_lines:
        return name
    return name if reader_named(Path(name)) is read_json_lines else f"{Path(name).stem}.jsonl"


def _staying(
    numbered: Iterable[tuple[int, Source, Row]],
    to_drop: Mapping[int, str],
    counts: Counter[str],
    repairs: Repairs,
) -> Iterator[Row]:
    """The rows that are not dropped, repaired; counts all by reason, "" for kept ones.

    The sections of a text count once, and it is dropped only if all of them are; a text file that
    was given itself stays.
    """
    held, whole = list[Row](), True  # sections of a text that may be dropped
    for number, source, row in numbered:
        goes_on = bool(row.values.get(CONTINUED))
        given = source.is_verbatim and Path(source.name).is_file()
        why = "" if given or not whole or len(held) == MOST_HELD else to_drop.get(number, "")
        held.append(row)
        if why and goes_on:
            continue
        counts[why] += not goes_on
        if why:
            repairs.drop(held[0], why)
        else:
            yield from (repairs.repaired(source, one) for one in held)
        held, whole = [], not goes_on


def _write(paths: Sequence[Path], name: Path, source: Source, rows: Iterator[Row]) -> None:
    """Write rows to one file or two; `name`, which may differ from the path, gives the format."""
    first = next(rows, None)
    if first is None:
        raise GlassformerError(f"{source.name}: no rows would be left; fix it by hand")
    rows = chain([first], rows)
    if source.is_verbatim and reader_named(name) is read_plain:
        _write_texts(paths[0], Path(source.name), rows)
        return
    with ExitStack() as stack:
        files = [
            stack.enter_context(path.open("w", encoding="utf-8", errors="replace", newline=""))
            for path in paths
        ]
        if len(files) > 1:
            _write_side_by_side(files, rows)
        else:
            WRITERS[reader_named(name)](files[0], name, source, rows)
    for path in paths:
        sync(path)


def _write_texts(place: Path, original: Path, rows: Iterator[Row]) -> None:
    """Write a text file, or a folder of them, with the same lines and line ends."""
    for file, sections in groupby(rows, key=lambda row: row.file):
        path, target = Path(file), place
        if original.is_dir():
            inner = path.relative_to(original)
            target = place / (inner.with_suffix("") if packing_of(path) else inner)
            target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", errors="replace", newline="") as stream:
            stream.writelines(row["text"] for row in sections)
        sync(target)


def _write_side_by_side(files: Sequence[TextIO], rows: Iterator[Row]) -> None:
    for row in rows:
        for file, value in zip(files, row.values.values(), strict=True):
            file.write(f"{value}\n")


def _write_table(file: TextIO, name: Path, source: Source, rows: Iterator[Row]) -> None:
    """Write a header; unnamed columns get the name of their role."""
    tabs = suffix_of(name) != ".csv"
    # A tab-separated file is read with quotes if its header shows them.
    table = csv.writer(
        file, delimiter="\t" if tabs else ",", quoting=csv.QUOTE_ALL if tabs else csv.QUOTE_MINIMAL
    )
    role_of = {column: role for role, column in source.columns.items()}
    for number, row in enumerate(rows):
        if number == 0:
            table.writerow(
                role_of.get(column, f"column_{column}") if column == str(position) else column
                for position, column in enumerate(row.values, start=1)
            )
        table.writerow(row.values.values())


def _write_lines(file: TextIO, name: Path, source: Source, rows: Iterator[Row]) -> None:
    file.writelines(f"{row['text']}\n" for row in rows)


def _write_objects(file: TextIO, name: Path, source: Source, rows: Iterator[Row]) -> None:
    for row in rows:
        file.write(
            json.dumps(dict(row.values), ensure_ascii=False, default=np.ndarray.tolist) + "\n"
        )


WRITERS: dict[Reader, Callable[[TextIO, Path, Source, Iterator[Row]], None]] = {
    read_table: _write_table,
    read_plain: _write_lines,
    read_json_lines: _write_objects,
}
SUFFIXES: dict[Reader, str] = {
    read_table: ".csv, .tsv or .jsonl",
    read_plain: ".txt or .jsonl",
    read_json_lines: ".jsonl",
}
