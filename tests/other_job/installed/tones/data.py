"""The data of `listen`: recordings and their words, in a table or in a folder.

A table names a file in each row, seen from where the table lies. In a folder, the word is the name
of its recording up to the first dash: `abba-3.wav`.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.columns import Columns, Role
from glassformer.data.doctor.check import Check, Finding, Specimen
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.rows import Row
from glassformer.data.samples import Sample
from glassformer.data.schema import Schema
from glassformer.wording import counted
from tones.sound import as_sound, read_samples

SILENT = 0.01  # no sample is louder


class ListenSchema(Schema):
    """A recording and its word."""

    noun = "recording"
    roles = (
        Role(name="path", names=("path", "file", "wav", "recording")),
        Role(name="text", names=("text", "word"), answer=True),
    )

    def open(self, name: str, config: DataConfig) -> Iterator[Row] | None:
        folder = Path(name)
        return rows_in(folder) if recordings_in(folder) else None

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        return any(str(value).endswith(".wav") for value in next(rows).values.values())

    def sample(self, row: Row, columns: Columns) -> tuple[Sample, str]:
        sample, fault = super().sample(row, columns)
        if not fault and not Path(sample["path"]).is_file():
            fault = "a missing recording"
        return sample, fault

    def value(self, role: Role, row: Row, columns: Columns) -> Any:
        value = super().value(role, row, columns)
        if role.name != "path" or not value:
            return value
        return str(Path(row.file).parent / value)

    def content(self, sample: Sample, config: DataConfig) -> str:
        """The sound itself, whatever the file is called."""
        return sha256(read_samples(Path(sample["path"]))[0].tobytes()).hexdigest()

    def checks(self, config: Config) -> list[Check]:
        return [*default_checks(lambda sample: sample["text"], one_answer=True), Silence()]


def recordings_in(folder: Path) -> list[Path]:
    """The recordings of a folder, in order."""
    return sorted(folder.glob("*.wav"))


def rows_in(folder: Path) -> Iterator[Row]:
    """The rows of a folder of recordings."""
    for number, path in enumerate(recordings_in(folder), start=1):
        values = {"path": str(path.resolve()), "text": path.stem.split("-")[0]}
        yield Row(values, str(folder), number)


class Silence(Check):
    """Recordings without a sound."""

    def __init__(self) -> None:
        self.silent: list[int] = []

    def see(self, row: Specimen) -> None:
        sound = as_sound(read_samples(Path(row.sample["path"]))[0])
        if np.abs(sound).max(initial=0) < SILENT:
            self.silent.append(row.number)

    def findings(self) -> Iterator[Finding]:
        if self.silent:
            what = f"{counted(len(self.silent), 'recording')} without a sound"
            advice = "record them again, or drop them with --fix"
            yield Finding("silence", "warning", what, advice, self.silent)

    def to_drop(self) -> dict[int, str]:
        return dict.fromkeys(self.silent, "silent")
