"""The data of `transcribe`: recordings and their transcripts, in a table or a folder.

A table names a file in each row, as seen from where the table lies. Folders are those of
`data.audio.layouts`: recordings beside text files, LibriSpeech, Kaldi, Common Voice, LJSpeech. Data
that name many speakers are split by speaker. A recording is read once, and the facts of its sound
are kept with its sample.
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
from glassformer.data.sources.files import reason
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.text_checks import GarbledText
from glassformer.tasks.transcribe.checks import LongTranscripts, RareCharacters, SoundLevels
from glassformer.tasks.transcribe.facts import Part, read_facts
from glassformer.tasks.transcribe.transcripts import Normaliser

PATHS = ("path", "audio", "file", "wav", "recording", "filename", "audio_path", "clip", "file_name")
SPEAKERS = ("speaker", "speaker_id", "client_id", "spk", "spk_id", "说话人")
TEXTS = ("text", "transcript", "transcription", "sentence", "words", *COLUMN_NAMES["text"])


def paths_of_recordings(columns: Sequence[str], head: Sequence[Row]) -> str | None:
    """The column whose values all end like recordings."""
    for column in columns:
        if head and all(is_recording(str(row.values.get(column, ""))) for row in head):
            return column
    return None


def in_short(error: Exception, path: str) -> str:
    """What is wrong with a recording, without its path, figures and advice.

    >>> in_short(GlassformerError("a.wav: too short (1 sample at 8000 Hz); remove it"), "a.wav")
    'too short'
    """
    if isinstance(error, OSError):
        return reason(error)
    return str(error).removeprefix(path).partition(": ")[2].partition(";")[0].partition(" (")[0]


class TranscribeSchema(Schema):
    """A recording, or a part of one, and its transcript."""

    noun = "recording"
    roles = (
        Role(name="path", names=PATHS, guess=paths_of_recordings),
        Role(name="text", names=TEXTS, answer=True),
        Role(name="start", names=("start",), required=False),
        Role(name="end", names=("end",), required=False),
    )
    groups = SPEAKERS

    def open(self, name: str, config: DataConfig) -> Iterator[Row] | None:
        path = Path(name)
        return read_recordings(path, config.encoding) if path.exists() else None

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
        sample, fault = super().sample(row, columns)
        if fault:
            return sample, fault
        import_soundfile()  # without it, no recording can be read
        try:
            sample["sound"] = read_facts(Part.of(sample)).as_values()
        except (GlassformerError, OSError) as error:
            return sample, f"a recording that cannot be read ({in_short(error, sample['path'])})"
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
