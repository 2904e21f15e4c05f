"""The files of a configuration, read for the checks and again for a cleaned copy."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from glassformer.config import DataConfig
from glassformer.data.columns import Columns, runner_up_lines
from glassformer.data.doctor.check import Finding, Specimen
from glassformer.data.doctor.files import (
    Encoding,
    encoding_of,
    files_of,
    header_findings,
    is_text_table,
)
from glassformer.data.ingest import header_of, names_by_split, open_rows
from glassformer.data.rows import Row, as_text
from glassformer.data.schema import Schema
from glassformer.data.sources.formats import is_table
from glassformer.data.splits import hashed, named_split


class Source:
    """A file, a folder, a set of the catalog or a layout of the job's own.

    Args:
        split: The split of the file.
        encodings: Those of files that were read before, by name.
    """

    def __init__(
        self,
        name: str,
        split: str,
        config: DataConfig,
        schema: Schema,
        encodings: dict[str, Encoding],
    ) -> None:
        self.name, self.split, self.config, self.schema = name, split, config, schema
        self.encodings = encodings

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """Its files; of several, each holds one column."""
        return self.schema.files(self.name)

    @cached_property
    def is_general(self) -> bool:
        """Whether it is a file or folder for the general readers."""
        own_layout = self.schema.open(self.name, self.config) is not None
        return Path(self.name).exists() and not own_layout

    @cached_property
    def text_files(self) -> Sequence[Path]:
        """Its text files, if it has a layout of the job's own."""
        own_layout = Path(self.name).exists() and not self.is_general
        return self.schema.text_files(self.name) if own_layout else ()

    @cached_property
    def is_verbatim(self) -> bool:
        """Whether its files are whole texts, of which a cleaned copy keeps every line."""
        return bool(self.text_files) and not any(map(is_table, self.text_files))

    @cached_property
    def encoding(self) -> Encoding | None:
        """The encoding of its text; None if it is not read from text files."""
        files = files_of(Path(self.name)) if self.is_general else self.text_files
        if not files:
            return None
        if self.name not in self.encodings:  # all of the file is read for it
            self.encodings[self.name] = encoding_of(files, self.config.encoding)
        return self.encodings[self.name]

    def open(self) -> Iterator[Row]:
        """Its rows."""
        opened = open_rows(self.name, self._config, self.schema, self.split)
        self.columns, self.runners_up = opened.columns, opened.runners_up
        self.unread = opened.unread
        return opened.rows

    @property
    def _config(self) -> DataConfig:
        """The configuration, with the encoding that was guessed."""
        guess = self.encoding.guess if self.encoding else None
        return replace(self.config, encoding=guess) if guess else self.config

    @cached_property
    def columns(self) -> Columns:
        """Its columns by role."""
        self.open()
        return self.columns

    @cached_property
    def runners_up(self) -> Columns:
        """Columns that fit a role as well as the one that was guessed."""
        self.open()
        return self.runners_up

    @cached_property
    def unread(self) -> list[str]:
        """Its columns without a role."""
        self.open()
        return self.unread

    @cached_property
    def header(self) -> bool | None:
        """Whether its first row was read as a header; None if it is no text table."""
        return header_of(self.name, self._config, self.schema)

    @cached_property
    def group(self) -> str | None:
        """The group column."""
        return self.columns.get("group") or self.config.group

    def runner_up_lines(self) -> list[str]:
        """What to say about columns that fit as well as those that were guessed."""
        return runner_up_lines(self.columns, self.runners_up)

    def split_of(self, row: Row) -> str | None:
        """The split of a row; None if it is not the split of its file."""
        value = row[self.columns["split"]] if "split" in self.columns else ""
        split = named_split(value, row.where) if value else self.split
        return split if self.split in ("train", split) else None

    def specimen(self, number: int, split: str, row: Row) -> tuple[Specimen, str]:
        """The row for the checks, and why it is left out, if it is."""
        sample, fault = self.schema.sample(row, self.columns)
        content = 0 if fault else hashed(self.schema.content(sample, self.config))
        used = {*self.columns.values(), self.group}
        others = {name: as_text(value) for name, value in row.values.items() if name not in used}
        group = as_text(row[self.group]) if self.group else ""
        return Specimen(number, split, sample, content, group, others), fault

    def findings(self) -> Iterator[Finding]:
        """Findings about the file itself, before any row is checked."""
        if self.encoding is not None:
            yield from self.encoding.findings(self.name)
            if self.config.header is None and is_text_table(Path(self.name)):
                yield from header_findings(self.name, list(next(self.open()).values))


class Reading:
    """All rows of a configuration, numbered from 0; can be iterated repeatedly.

    Args:
        encodings: Those of files that were read before, by name, and then of these.
    """

    def __init__(
        self, config: DataConfig, schema: Schema, encodings: dict[str, Encoding] | None = None
    ) -> None:
        self.config, self.schema = config, schema
        known = {} if encodings is None else encodings
        self.sources = [
            Source(name, split, config, schema, known)
            for split, names in names_by_split(config, schema).items()
            for name in names
        ]

    def __iter__(self) -> Iterator[tuple[int, Source, Row]]:
        number = 0
        for source in self.sources:
            for row in source.open():
                yield number, source, row
                number += 1


class Places:
    """The location of every row, in a few bytes each."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.file_of, self.number_of, self.line_of = array("L"), array("L"), array("L")

    def add(self, row: Row) -> None:
        """Add the next row."""
        self.file_of.append(self.files.setdefault(row.file, len(self.files)))
        self.number_of.append(row.number)
        self.line_of.append(row.line)

    @cached_property
    def _names(self) -> list[str]:
        return list(self.files)

    def where(self, number: int) -> str:
        """The file, the row and its line."""
        file = self._names[self.file_of[number]]
        return Row({}, file, self.number_of[number], self.line_of[number]).where
