"""The schema of jobs whose samples are recordings, and the roles that these jobs share.

A table names a file in each row, as seen from where the table lies. Folders are those of
`data.audio.layouts`. Data that name many speakers are split by speaker. A recording is read once,
and the facts of its sound are kept with its sample.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from glassformer.config import DataConfig
from glassformer.data.audio.decoders import import_soundfile
from glassformer.data.audio.layouts import read_recordings
from glassformer.data.audio.paths import is_recording
from glassformer.data.columns import Columns, Role
from glassformer.data.ingest import LOOKED_AT
from glassformer.data.paths import folders_in, located
from glassformer.data.rows import Row, listed
from glassformer.data.samples import Sample
from glassformer.data.schema import Schema
from glassformer.data.sources import read_rows
from glassformer.data.sources.files import reason
from glassformer.data.sources.formats import is_table
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.recordings import Part, read_facts

MISSING = "not found"
PATHS = ("path", "audio", "file", "wav", "recording", "filename", "audio_path", "clip", "file_name")
SPEAKERS = ("speaker", "speaker_id", "client_id", "spk", "spk_id", "说话人")


def paths_of_recordings(columns: Sequence[str], head: Sequence[Row]) -> str | None:
    """The column whose values all end like recordings."""
    for column in columns:
        if head and all(is_recording(str(row.values.get(column, ""))) for row in head):
            return column
    return None


def table_in(folder: str, schema: Schema) -> str | None:
    """The only table in a folder of recordings without answers that has them, if there is one."""
    path = Path(folder)
    first = next(read_recordings(path) or iter(()), None) if path.is_dir() else None
    answers = {role.name for role in schema.roles if role.answer}
    if len(folders_in(path) if path.is_dir() else ()) == 1:
        answers -= {"label"}  # the only folder of recordings is no label
    if first is None or answers & {*first.values}:
        return None
    fitting = [str(table) for table in sorted(path.iterdir()) if _tells(table, schema)]
    return fitting[0] if len(fitting) == 1 else None


def _tells(table: Path, schema: Schema) -> bool:
    """Whether a file is a table of recordings that exist, and their answers."""
    if not (table.is_file() and is_table(table)):
        return False
    try:
        head = list(islice(read_rows(table), LOOKED_AT))
        columns = schema.find_columns(head, {})
        return Path(located(head[0], head[0][columns[PATH.name]])).is_file()
    except (GlassformerError, KeyError):
        return False


def without_answers(file: str, noun: str, advice: str) -> GlassformerError:
    """The error for recordings that come without transcripts or labels; a table may have them."""
    tables = [path for path in sorted(Path(file).parent.iterdir()) if is_table(path)]
    named = listed([str(table) for table in tables])
    hint = f"give the table that has them, one of {named}" if len(tables) > 1 else advice
    if len(tables) == 1:
        hint = f"add rows to {tables[0]}, each with a recording that exists and its {noun}"
    return GlassformerError(f"{file}: a recording without a {noun}, like the others; {hint}")


def in_short(error: Exception, path: str) -> str:
    """What is wrong with a recording, without its path, figures and advice.

    >>> in_short(GlassformerError("a.wav: too short (1 sample at 8000 Hz); remove it"), "a.wav")
    'too short'
    """
    if isinstance(error, OSError):
        return reason(error)
    return str(error).removeprefix(path).partition(": ")[2].partition(";")[0].partition(" (")[0]


PATH = Role(name="path", names=PATHS, guess=paths_of_recordings, by_content=True)
START, END = (Role(name=name, names=(name,), required=False) for name in ("start", "end"))


class SoundSchema(Schema):
    """Samples that are recordings, or parts of them, except for the answers."""

    noun = "recording"
    groups = SPEAKERS

    def arrange(self, names: Sequence[str]) -> list[str]:
        """The names; of a folder of recordings without answers, the table in it that has them."""
        return [table_in(name, self) or name for name in names]

    def open(self, name: str, config: DataConfig) -> Iterator[Row] | None:
        path = Path(name)
        return read_recordings(path, config.encoding) if path.exists() else None

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
            why = in_short(error, sample["path"])
            if why.startswith(MISSING):
                near = not Path(row[columns["path"]]).is_absolute()
                why = MISSING + (f", seen from {Path(row.file).parent}" if near else "")
            return sample, f"a recording that cannot be read ({why})"
        return sample, ""

    def content(self, sample: Sample, config: DataConfig) -> str:
        """The sound itself, whatever the file is called."""
        return str(sample["sound"]["content"])
