"""The data of `transcribe`: recordings and their transcripts, in a table or a folder.

Folders are recordings beside text files, LibriSpeech, Kaldi, Common Voice and LJSpeech.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.audio.paths import is_recording
from glassformer.data.columns import COLUMN_NAMES, Columns, Role, find_by_name
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.ingest import LOOKED_AT
from glassformer.data.rows import Row
from glassformer.data.samples import Sample
from glassformer.data.splits import content_key
from glassformer.tasks.shared.sound_checks import SoundLevels
from glassformer.tasks.shared.sound_data import END, PATH, START, SoundSchema, without_answers
from glassformer.tasks.shared.text_checks import GarbledText
from glassformer.tasks.shared.text_data import longest_texts, repeated_values
from glassformer.tasks.transcribe.checks import LongTranscripts, RareCharacters, UnlikelyPaces
from glassformer.tasks.transcribe.transcripts import Normaliser, without_punctuation

TEXTS = ("text", "transcript", "transcription", "sentence", "words", *COLUMN_NAMES["text"])


class TranscribeSchema(SoundSchema):
    """A recording, or a part of one, and its transcript."""

    roles = (PATH, Role(name="text", names=TEXTS, answer=True, guess=longest_texts), START, END)
    related_kinds = together = ("transcript",)

    def related(self, sample: Sample) -> Mapping[str, str]:
        """The words, without letter case and punctuation."""
        if "text" not in sample:  # for prediction
            return {}
        return {"transcript": content_key(without_punctuation(sample["text"])) or sample["text"]}

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        """Recordings are a folder in a layout of theirs, or a table that names some.

        A table with a column of labels, and none called like transcripts, is left to `classify`.
        """
        head = list(islice(rows, LOOKED_AT))
        if not head or not any(is_recording(str(value)) for value in head[0].values.values()):
            return False
        columns = find_by_name(list(head[0].values), self.roles)
        others = [column for column in head[0].values if column not in columns.values()]
        return "text" in columns or repeated_values(others, head) is None

    def find_columns(self, head: Sequence[Row], given: Mapping[str, str], *more: Role) -> Columns:
        if any(role.answer for role in self.roles) and all(
            {"path"} <= {*row.values} <= {"path", "label"} for row in head
        ):
            advice = "write it to a file of the same name that ends in .txt, or give a table of "
            raise without_answers(head[0].file, "transcript", advice + "paths and texts")
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
