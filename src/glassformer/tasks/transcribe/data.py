"""The data of `transcribe`: recordings and their transcripts, in a table or a folder.

Folders are recordings beside text files, LibriSpeech, Kaldi, Common Voice and LJSpeech.
"""

from collections.abc import Iterator, Mapping, Sequence

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.audio.paths import is_recording
from glassformer.data.columns import COLUMN_NAMES, Columns, Role
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.rows import Row
from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.sound_checks import SoundLevels
from glassformer.tasks.shared.sound_data import END, PATH, START, SoundSchema
from glassformer.tasks.shared.text_checks import GarbledText
from glassformer.tasks.transcribe.checks import LongTranscripts, RareCharacters, UnlikelyPaces
from glassformer.tasks.transcribe.transcripts import Normaliser

TEXTS = ("text", "transcript", "transcription", "sentence", "words", *COLUMN_NAMES["text"])


class TranscribeSchema(SoundSchema):
    """A recording, or a part of one, and its transcript."""

    roles = (PATH, Role(name="text", names=TEXTS, answer=True), START, END)

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        """Recordings are a folder in a layout of theirs, or a table that names some."""
        first = next(rows, None)
        return first is not None and any(
            is_recording(str(value)) for value in first.values.values()
        )

    def find_columns(self, head: Sequence[Row], given: Mapping[str, str], *more: Role) -> Columns:
        if any(role.answer for role in self.roles) and all(
            {"path"} <= {*row.values} <= {"path", "label"} for row in head
        ):
            raise GlassformerError(
                f"{head[0].file}: a recording without a transcript, like the others; write it to a "
                f"file of the same name that ends in .txt, or give a table of paths and texts"
            )
        return super().find_columns(head, given, *more)

    def checks(self, config: Config) -> list[Check]:
        normalise = Normaliser(config.task.lowercase, config.task.punctuation)

        def answer(sample: Sample) -> str:
            return normalise(sample["text"])

        return [
            *default_checks(answer, one_answer=True),
            GarbledText("text"),
            SoundLevels(config.task.max_seconds, config.task.rate),
            LongTranscripts(answer, config.model.frontend.factor),
            UnlikelyPaces(answer),
            RareCharacters(answer),
        ]
