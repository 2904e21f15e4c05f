"""Recordings on disk: which files they are."""

from pathlib import Path

from glassformer.data.paths import files_in

SUFFIXES = {
    *(".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".sph", ".aif", ".aiff", ".au", ".caf"),
    *(".m4a", ".mp4", ".aac", ".webm", ".mka", ".mkv", ".mov", ".wma", ".amr", ".3gp"),
}


def is_recording(path: Path | str) -> bool:
    """Whether a file is a recording, by its suffix."""
    return Path(path).suffix.lower() in SUFFIXES


def recordings_in(folder: Path) -> list[Path]:
    """The recordings in a folder, sorted, with absolute paths."""
    return files_in(folder, SUFFIXES)
