"""The data of `transcribe`: recordings and their transcripts, in a table or a folder.

A table names a file in each row, as seen from where the table lies. Folders are those of
`data.audio.layouts`: recordings beside text files, LibriSpeech, Kaldi, Common Voice, LJSpeech; one
with many speakers is split by speaker. A recording is read once, and the facts of its sound are
kept with its sample.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.audio.decoders import import_soundfile
from glassformer.data.audio.layouts import read_recordings
from glassformer.data.audio.paths import is_recording, located
from glassformer.data.columns import COLUMN_NAMES, Columns, Role
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.rows import Row
from glassformer.data.samples import Sample
from glassformer.data.schema import Schema
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.text_checks import GarbledText
from glassformer.tasks.transcribe.checks import LongTranscripts, RareCharacters, SoundLevels
from glassformer.tasks.transcribe.facts import Part, read_facts
from glassformer.tasks.transcribe.transcripts import Normaliser

PATHS = ("path", "audio", "file", "wav", "recording", "filename", "audio_path", "clip", "file_name")
ENOUGH = 20  # speakers: with fewer, holding out whole speakers would hold out too much or nothing
OWN_GROUP = "speaker as group"  # a column that no file has
TEXTS = ("text", "transcript", "transcription", "sentence", "words", *COLUMN_NAMES["text"])


def by_speaker(rows: Iterator[Row]) -> Iterator[Row]:
    """Rows that name their speaker as their group."""
    for row in rows:
        yield Row({**row.values, OWN_GROUP: row["speaker"]}, row.file, row.number)


def paths_of_recordings(columns: Sequence[str], head: Sequence[Row]) -> str | None:
    """The column whose values all end like recordings."""
    for column in columns:
        if head and all(is_recording(str(row.values.get(column, ""))) for row in head):
            return column
    return None


class TranscribeSchema(Schema):
    """A recording, or a part of one, and its transcript."""

    noun = "recording"
    roles = (
        Role(name="path", names=PATHS, guess=paths_of_recordings),
        Role(name="text", names=TEXTS, answer=True),
        Role(name="start", names=("start",), required=False),
        Role(name="end", names=("end",), required=False),
    )

    def open(self, name: str, config: DataConfig) -> Iterator[Row] | None:
        path = Path(name)
        rows = read_recordings(path, config.encoding) if path.exists() else None
        if rows is None:
            return None
        speakers = {row.values.get("speaker", "") for row in rows}
        again = read_recordings(path, config.encoding)
        return again if len(speakers) < ENOUGH or again is None else by_speaker(again)

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        """Recordings are a folder in a layout of theirs, or a table that names some."""
        first = next(rows, None)
        return first is not None and any(
            is_recording(str(value)) for value in first.values.values()
        )

    def value(self, role: Role, row: Row, columns: Columns) -> Any:
        value = super().value(role, row, columns)
        return located(row, value) if role.name == "path" and value else value

    def sample(self, row: Row, columns: Columns) -> tuple[Sample, str]:
        """The sample of a row, with the facts of its sound; a recording must be readable."""
        sample, lacking = super().sample(row, columns)
        if lacking:
            return sample, lacking
        if OWN_GROUP in row.values:
            sample.setdefault("group", row[OWN_GROUP])
        import_soundfile()  # without it, no recording can be read
        try:
            part = Part.of(sample)
            sample["sound"] = read_facts(part).as_values()
        except (GlassformerError, OSError, ValueError):
            return sample, self.noun
        return sample, ""

    def content(self, sample: Sample, config: DataConfig) -> str:
        """The sound itself, whatever the file is called."""
        return str(sample["sound"]["content"])

    def checks(self, config: Config) -> list[Check]:
        normalise = Normaliser(config.task.lowercase, config.task.punctuation)

        def answer(sample: Sample) -> str:
            return normalise(sample["text"])

        return [
            *default_checks(answer, one_answer=True),
            GarbledText("text"),
            SoundLevels(config.task.max_seconds),
            LongTranscripts(answer, config.model.frontend.factor),
            RareCharacters(answer),
        ]
