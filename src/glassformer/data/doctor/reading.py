"""The files of a configuration as checks see them, and once more for a cleaned copy."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from glassformer.config import DataConfig
from glassformer.data.doctor.check import Specimen, specimen
from glassformer.data.doctor.encoding import Encoding, encoding_of
from glassformer.data.ingest import names_by_part, open_rows
from glassformer.data.rows import Row, as_text
from glassformer.data.samples import Sample
from glassformer.data.splits import named_split
from glassformer.data.splitter import LISTS, Columns


class Source:
    """A file, a folder or a set of the catalog, and the part it was given for."""

    def __init__(self, name: str, part: str, config: DataConfig, roles: tuple[str, ...]) -> None:
        self.name, self.part, self.config, self.roles = name, part, config, roles

    @cached_property
    def encoding(self) -> Encoding | None:
        """How its text is encoded; None for a set of the catalog."""
        path = Path(self.name)
        return encoding_of(path, self.config.encoding) if path.exists() else None

    def open(self) -> Iterator[Row]:
        """Its rows."""
        guess = self.encoding.guess if self.encoding else None
        config = replace(self.config, encoding=guess) if guess else self.config
        rows, self.columns = open_rows(self.name, config, self.roles, self.part)
        return rows

    @cached_property
    def columns(self) -> Columns:
        """Its columns by role."""
        self.open()
        return self.columns

    @cached_property
    def group(self) -> str | None:
        """The column of what belongs together."""
        return self.columns.get("group") or self.config.group

    def split_of(self, row: Row) -> str | None:
        """The part of a row; None if it belongs to another one than the file was given for."""
        said = row[self.columns["split"]] if "split" in self.columns else ""
        part = named_split(said, row.where) if said else self.part
        return part if self.part in ("train", part) else None

    def sample(self, row: Row) -> tuple[Sample, str]:
        """What the job reads of a row, and the first thing that lacks, if one does."""
        sample: Sample = {}
        lacking = ""
        for role in self.roles:
            name = role.removesuffix("?")
            if name in self.columns:
                value = row[self.columns[name]]
                if isinstance(value, list) and name not in LISTS:
                    value = " ".join(value)
                if isinstance(value, str) and not value.strip() and name == role:
                    lacking = lacking or name
                sample[name] = value
        return sample, lacking

    def specimen(self, number: int, part: str, row: Row) -> tuple[Specimen, str]:
        """The row for the checks, and what lacks."""
        sample, lacking = self.sample(row)
        playing = {*self.columns.values(), self.group}
        others = {name: as_text(value) for name, value in row.values.items() if name not in playing}
        group = as_text(row[self.group]) if self.group else ""
        return specimen(number, part, sample, group=group, others=others), lacking


class Reading:
    """All rows of a configuration, numbered from 0, as often as they are asked for."""

    def __init__(self, config: DataConfig, roles: Sequence[str]) -> None:
        self.config = config
        self.sources = [
            Source(name, part, config, tuple(roles))
            for part, names in names_by_part(config, roles).items()
            for name in names
        ]

    def __iter__(self) -> Iterator[tuple[int, Source, Row]]:
        number = 0
        for source in self.sources:
            for row in source.open():
                yield number, source, row
                number += 1


class Places:
    """Where each row stands, in a few bytes a row."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.file_of, self.number_of = array("L"), array("L")

    def add(self, row: Row) -> None:
        """The next row."""
        self.file_of.append(self.files.setdefault(row.file, len(self.files)))
        self.number_of.append(row.number)

    @cached_property
    def _names(self) -> list[str]:
        return list(self.files)

    def where(self, number: int) -> str:
        """The file and the row, as a person finds it."""
        file = self._names[self.file_of[number]]
        return Row({}, file, self.number_of[number]).where
