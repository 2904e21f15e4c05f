"""A cleaned copy: the rows that stay, in UTF-8, in a new place; the original is only read.

A copy has the format of what it copies, where text can hold that:

    .csv .tsv .tab        a table with a header
    .txt and other text   a row a line; of two files side by side, a line in each
    all the rest          JSON lines: folders, Parquet, sets of the catalog

Values are written as they were read, which is as text.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from glassformer.data.doctor.reading import Reading, Source
from glassformer.data.rows import Row
from glassformer.data.sources.files import packing_of, reason, suffix_of
from glassformer.data.sources.formats import SOURCES, Reader, reader_of
from glassformer.data.sources.json_lines import read_json_lines
from glassformer.data.sources.plain import read_plain
from glassformer.data.sources.table import read_table
from glassformer.errors import GlassformerError
from glassformer.files import replacing, sync


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was written.

    Attributes:
        files: The copies, each with what it is a copy of.
        kept: Rows in them.
        dropped: Rows that are not, by reason.
    """

    files: Mapping[str, str]
    kept: int
    dropped: Mapping[str, int]

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {"files": dict(self.files), "kept": self.kept, "dropped": dict(self.dropped)}


def write_clean(reading: Reading, to_drop: Mapping[int, str], out: Path) -> Cleaned:
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
                staying = _staying(numbered, to_drop, counts)
                places = [half] if single else [half / name for name in own]
                _write(places, Path(own[0]), source, staying)
    except OSError as error:
        raise GlassformerError(
            f"{out}: cannot be written ({reason(error)}); choose another place"
        ) from None
    kept = counts.pop("")
    return Cleaned(files, kept, dict(counts.most_common()))


def names_a_file(out: Path, sources: list[Source]) -> bool:
    """Whether the copy is one file, which must be of a format that can hold it."""
    originals = [path for source in sources for path in source.files]
    endings = {suffix_of(path) for path in originals if not path.is_dir()} - {""}
    if not (suffix_of(out) in endings | {*SOURCES} or packing_of(out)):
        return False
    fitting, chosen = format_of(sources[0]), reader_of(out)
    if len(sources) > 1 or (len(originals) > 1 and chosen is not read_json_lines):
        raise GlassformerError(
            f"{out}: {len(originals)} files cannot become one; name a folder for them"
        )
    if chosen not in (fitting, read_json_lines) or packing_of(out):
        named = SUFFIXES[fitting]
        raise GlassformerError(
            f"{out}: a copy of {sources[0].name} cannot be written so; let its name end in {named}"
        )
    return True


def refuse_target(out: Path, sources: list[Source]) -> None:
    """Nothing is written over, nor into what is to be copied."""
    if out.exists() or out.is_symlink():
        raise GlassformerError(f"{out}: already exists; name a new place for the copy")
    if not out.absolute().parent.is_dir():
        raise GlassformerError(f"{out}: its folder does not exist; make it, or name another place")
    for source in sources:
        if Path(source.name).is_dir() and out.resolve().is_relative_to(Path(source.name).resolve()):
            raise GlassformerError(
                f"{out}: lies inside {source.name}, which is to be copied; name another place"
            )


def format_of(source: Source) -> Reader:
    """What reads a copy: a table stays a table, lines stay lines, all else becomes JSON lines."""
    path = Path(source.name)
    reader = reader_of(path) if source.is_general and path.is_file() else read_json_lines
    return reader if reader in SUFFIXES else read_json_lines


def file_names(sources: list[Source]) -> list[tuple[str, ...]]:
    """The names for the copy of each source, one, or two for files side by side, each once."""
    found: list[tuple[str, ...]] = []
    for source in sources:
        names = tuple(_bare_name(path, source) for path in source.files)
        before = ["", f"{source.split}-"]
        before += [f"{source.split}-{number}-" for number in range(2, len(sources) + 2)]
        taken = {name for some in found for name in some}
        tried = (tuple(f"{prefix}{name}" for name in names) for prefix in before)
        found.append(next(some for some in tried if not {*some} & taken))
    return found


def _bare_name(path: Path, source: Source) -> str:
    """What a copy is called: as the original, unpacked, with the ending of its format."""
    name = path.with_suffix("").name if packing_of(path) else path.name
    if len(source.files) > 1 or format_of(source) is not read_json_lines:
        return name
    return name if reader_of(Path(name)) is read_json_lines else f"{Path(name).stem}.jsonl"


def _staying(
    numbered: Iterable[tuple[int, Source, Row]], to_drop: Mapping[int, str], counts: Counter[str]
) -> Iterator[Row]:
    """The rows that are not dropped; all are counted, by the reason or by none."""
    for number, _, row in numbered:
        why = to_drop.get(number, "")
        counts[why] += 1
        if not why:
            yield row


def _write(paths: Sequence[Path], name: Path, source: Source, rows: Iterator[Row]) -> None:
    """A file of rows, or two. A name, which may not be that of the path yet, says the format."""
    first = next(rows, None)
    if first is None:
        raise GlassformerError(f"{source.name}: no row would be left of it; fix it by hand")
    rows = chain([first], rows)
    with ExitStack() as stack:
        files = [
            stack.enter_context(path.open("w", encoding="utf-8", errors="replace", newline=""))
            for path in paths
        ]
        if len(files) > 1:
            _write_side_by_side(files, rows)
        else:
            WRITERS[reader_of(name)](files[0], name, source, rows)
    for path in paths:
        sync(path)


def _write_side_by_side(files: Sequence[TextIO], rows: Iterator[Row]) -> None:
    for row in rows:
        for file, value in zip(files, row.values.values(), strict=True):
            file.write(f"{value}\n")


def _write_table(file: TextIO, name: Path, source: Source, rows: Iterator[Row]) -> None:
    """With a header; columns that had no name get that of their role."""
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
