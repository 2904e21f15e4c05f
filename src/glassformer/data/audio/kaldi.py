"""Kaldi data folders: files of lines that begin with the key of an utterance or a recording.

    wav.scp    recording and its path; a command in its place is refused, never run
    text       utterance and its words
    utt2spk    utterance and its speaker, if the file is there
    segments   utterance, its recording, start and end in seconds, if the file is there

Without segments, an utterance is the recording of the same key.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from glassformer.data.paths import located
from glassformer.data.rows import Row
from glassformer.data.sources.decoding import lines
from glassformer.errors import GlassformerError


def is_kaldi(path: Path) -> bool:
    """Whether a path is a Kaldi data folder."""
    return (path / "wav.scp").is_file() and (path / "text").is_file()


def read_kaldi(folder: Path, encoding: str | None) -> Iterator[Row]:
    """One row per utterance."""
    recordings = {row["key"]: _path(row) for row in _entries(folder / "wav.scp", encoding)}
    speakers = {row["key"]: row["rest"] for row in _entries(folder / "utt2spk", encoding)}
    segments = {row["key"]: _segment(row) for row in _entries(folder / "segments", encoding)}
    for row in _entries(folder / "text", encoding):
        utterance = row["key"]
        values = segments.get(utterance, {"recording": utterance})
        recording = values["recording"]
        if recording not in recordings:
            raise GlassformerError(
                f"{row.where}: no recording {recording!r} in wav.scp; add it there, or remove the "
                f"line"
            )
        times = {name: values[name] for name in ("start", "end") if name in values}
        who = {"speaker": speakers[utterance]} if utterance in speakers else {}
        words = {"path": recordings[recording], "text": row["rest"]}
        yield Row(words | times | who, row.file, row.number, row.line)


def _entries(file: Path, encoding: str | None) -> Iterator[Row]:
    """The lines of a file, each a `key` and the `rest`; none if there is no such file."""
    if file.exists():
        for number, line in enumerate(lines(file, encoding), start=1):
            key, *rest = line.strip().split(maxsplit=1)[:2] or [""]
            if key:
                yield Row({"key": key, "rest": "".join(rest)}, str(file), number)


def _path(row: Row) -> str:
    if row["rest"].endswith("|"):
        raise GlassformerError(
            f"{row.where}: a command instead of a path; write its output to a file, and the path "
            f"of that file here"
        )
    return located(row, row["rest"])


def _segment(row: Row) -> dict[str, str]:
    recording, *times = row["rest"].split() or [""]
    if not (len(times) == 2 and all(re.fullmatch(r"-?\d+(\.\d*)?", time) for time in times)):
        raise GlassformerError(
            f"{row.where}: not of the form UTTERANCE RECORDING START END, with times in seconds; "
            f"correct the line"
        )
    start, end = times
    to = {} if end.startswith("-") else {"end": end}  # Kaldi's -1 is the end of the recording
    return {"recording": recording, "start": start, **to}
