"""Folders of recordings, as rows with a `path`, and a `text` or a `label`.

    kaldi          wav.scp and text; utt2spk and segments if they are there
    common_voice   validated.tsv, or another table like it, beside clips/
    ljspeech       metadata.csv beside wavs/
    librispeech    *.trans.txt beside the recordings, in the folders of speakers and chapters
    pairs          name.wav with name.txt, in one folder or one a speaker; or recordings alone
    labels         one folder per label, with recordings in it

Rows also have a `speaker` where it is known, and `start` and `end`, in seconds, where a row is a
part of its recording. The location of a row is the line or the file that it comes from. Whether a
recording exists is not checked here: a job skips the row, or refuses it, and names its location.

Tables with a column of paths are read by the general readers; `data.paths.located` finds their
recordings. To add a layout, write a function that recognises it and one that reads it, and list
both in LAYOUTS.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from glassformer.data.audio.kaldi import is_kaldi, read_kaldi
from glassformer.data.audio.paths import recordings_in
from glassformer.data.paths import folders_in, located
from glassformer.data.rows import Row
from glassformer.data.sources import read_rows
from glassformer.data.sources.decoding import document, lines
from glassformer.data.splits import SPLIT_NAMES
from glassformer.errors import GlassformerError

TRANSCRIPTS = tuple(f"{depth}*.trans.txt" for depth in ("", "*/", "*/*/", "*/*/*/", "*/*/*/*/"))

Recognise = Callable[[Path], bool]
Read = Callable[[Path, str | None], Iterator[Row]]


def read_recordings(path: Path, encoding: str | None = None) -> Iterator[Row] | None:
    """The rows of a data set in one of LAYOUTS; None if it is in none of them."""
    for recognises, read in LAYOUTS.values():
        if recognises(path):
            return read(path, encoding)
    return None


def _common_voice_table(path: Path) -> Path:
    return path / "validated.tsv" if path.is_dir() else path


def _is_common_voice(path: Path) -> bool:
    table = _common_voice_table(path)
    if table.suffix != ".tsv" or not table.is_file() or not (table.parent / "clips").is_dir():
        return False
    return {"client_id", "path", "sentence"} <= {*next(read_rows(table)).values}


def _read_common_voice(path: Path, encoding: str | None) -> Iterator[Row]:
    for row in read_rows(_common_voice_table(path), encoding=encoding):
        values = {
            "path": located(row, f"clips/{row['path']}"),
            "text": row["sentence"],
            "speaker": row["client_id"],
        }
        yield Row(values, row.file, row.number, row.line)


def _is_ljspeech(path: Path) -> bool:
    table = path / "metadata.csv" if path.is_dir() else path
    named = table.name == "metadata.csv" and table.is_file()
    return named and (table.parent / "wavs").is_dir()


def _read_ljspeech(path: Path, encoding: str | None) -> Iterator[Row]:
    """Of two texts the last, in which numbers are written out; quotes have no meaning."""
    table = path / "metadata.csv" if path.is_dir() else path
    for number, line in enumerate(lines(table, encoding), start=1):
        name, *texts = line.rstrip("\r\n").split("|")
        row = Row({}, str(table), number)
        if not 1 <= len(texts) <= 2:
            raise GlassformerError(
                f"{row.where}: not of the form NAME|TEXT or NAME|TEXT|NORMALISED TEXT; correct the "
                f"line"
            )
        row.values = {"path": located(row, f"wavs/{name}.wav"), "text": texts[-1]}
        yield row


def _is_librispeech(path: Path) -> bool:
    return any(next(path.glob(pattern), None) for pattern in TRANSCRIPTS)


def _read_librispeech(path: Path, encoding: str | None) -> Iterator[Row]:
    """With a `split` where the folder holds several of them, such as train-clean-100."""
    for file in sorted(file for pattern in TRANSCRIPTS for file in path.glob(pattern)):
        recordings = {recording.stem: recording for recording in recordings_in(file.parent)}
        inner = file.relative_to(path).parts
        split = inner[-4].partition("-")[0] if len(inner) > 3 else ""
        for number, line in enumerate(lines(file, encoding), start=1):
            name, _, text = line.strip().partition(" ")
            recording = recordings.get(name, file.parent.absolute() / f"{name}.flac")
            values = {"path": str(recording), "text": text, "speaker": name.partition("-")[0]}
            if split in SPLIT_NAMES:
                values["split"] = split
            yield Row(values, str(file), number)


def _is_pairs(path: Path) -> bool:
    """Recordings in a folder, or texts beside recordings in its folders."""
    if not path.is_dir() or any(recordings_in(path)):
        return path.is_dir()
    return any(_is_transcribed(folder) for folder in folders_in(path))


def _read_pairs(path: Path, encoding: str | None) -> Iterator[Row]:
    """With the name of the folder as `speaker` where there are several."""
    if any(recordings_in(path)):
        yield from _pairs_in(path, encoding, {})
    else:
        for folder in folders_in(path):
            yield from _pairs_in(folder, encoding, {"speaker": folder.name})


def _pairs_in(folder: Path, encoding: str | None, more: dict[str, str]) -> Iterator[Row]:
    transcribed = _is_transcribed(folder)
    for recording in recordings_in(folder):
        values = {"path": str(recording), **more}
        if transcribed:
            text = recording.with_suffix(".txt")
            words = document(text, encoding) if text.is_file() else ""
            values["text"] = " ".join(words.split())
        yield Row(values, str(folder / recording.name), 1)


def _is_transcribed(folder: Path) -> bool:
    return any(recording.with_suffix(".txt").is_file() for recording in recordings_in(folder))


def _is_labels(path: Path) -> bool:
    return path.is_dir() and any(recordings_in(folder) for folder in folders_in(path))


def _read_labels(path: Path, encoding: str | None) -> Iterator[Row]:
    for folder in folders_in(path):
        for recording in recordings_in(folder):
            values = {"path": str(recording), "label": folder.name}
            yield Row(values, str(folder / recording.name), 1)


LAYOUTS: dict[str, tuple[Recognise, Read]] = {
    "kaldi": (is_kaldi, read_kaldi),
    "common_voice": (_is_common_voice, _read_common_voice),
    "ljspeech": (_is_ljspeech, _read_ljspeech),
    "librispeech": (_is_librispeech, _read_librispeech),
    "pairs": (_is_pairs, _read_pairs),
    "labels": (_is_labels, _read_labels),
}
