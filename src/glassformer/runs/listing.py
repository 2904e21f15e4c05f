"""The runs in a folder, and what can be pruned."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.config.run import read_config_values
from glassformer.errors import GlassformerError
from glassformer.files import remove
from glassformer.reports.wording import written
from glassformer.runs.checksums import is_as_written
from glassformer.runs.earlier_reading import is_spare
from glassformer.runs.folder import RunFolder
from glassformer.runs.lock import is_locked
from glassformer.runs.new_folder import LEFT_BEHIND

DEEPEST = 3  # levels of subfolders in which runs are looked for


@dataclass(frozen=True, slots=True)
class Listed:
    """One run in a list."""

    path: Path
    job: str
    state: str
    score: str
    size: int

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "run": str(self.path),
            "job": self.job,
            "state": self.state,
            "score": self.score,
            "bytes": self.size,
        }


def list_runs_in(home: Path) -> list[Listed]:
    """The runs in a folder and its subfolders, or the folder itself if it is a run."""
    return [_listed(path) for path in _run_folders(home, DEEPEST)]


def prunable(home: Path) -> Iterator[tuple[Path, int]]:
    """What finished runs no longer need, and leftovers of killed ones, with sizes."""
    for path in _run_folders(home):
        if is_spare(path):
            yield path, size_of(path)
        elif _is_intact(RunFolder(path)) and not is_locked(path):
            for name in ("checkpoints", "data", "initial.safetensors", "pretrain"):
                if (path / name).exists():
                    yield path / name, size_of(path / name)
    for left in sorted(home.glob(".*.new-*")):
        named = re.fullmatch(LEFT_BEHIND, left.name)
        if named and not _is_alive(int(named["process"])):
            yield left, size_of(left)


def prune(path: Path) -> None:
    """Remove a file, or a folder with its contents."""
    try:
        remove(path)
    except OSError as error:
        raise GlassformerError(
            f"{error.filename or path}: cannot be removed ({error.strerror}); check its permissions"
        ) from None


def _is_intact(folder: RunFolder) -> bool:
    """Whether a run is finished and its model unchanged, so that the rest can be removed."""
    try:
        return folder.is_finished and is_as_written(folder.path, folder.model.name)
    except GlassformerError:
        return False


def _run_folders(home: Path, levels: int = 0) -> list[Path]:
    """The runs in a folder and so many levels of its subfolders, or itself if it is a run."""
    if not home.is_dir():
        raise GlassformerError(f"{home}: no such folder; name the one with the runs")
    if (home / "config.toml").exists():
        return [home]
    try:
        return sorted(_below(home, levels))
    except OSError as error:
        raise GlassformerError(
            f"{home}: cannot be opened ({error.strerror}); check its permissions"
        ) from None


def _below(folder: Path, levels: int) -> Iterator[Path]:
    """The runs in a folder and so many levels of its subfolders; a run is not searched for more."""
    for path in folder.iterdir():
        if os.path.exists(path / "config.toml"):
            yield path
        elif levels and path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            try:
                yield from _below(path, levels - 1)
            except OSError:  # one that may not be opened hides no other
                continue


def _listed(path: Path) -> Listed:
    """A run that cannot be read is listed with the reason."""
    folder = RunFolder(path)
    try:
        folder.refuse_special_files()
        job = str(read_config_values(folder.config_file)["job"])
        scores = folder.read_report().get("scores", {})
    except GlassformerError as error:
        return Listed(path, "?", str(error), "", size_of(path))
    return Listed(path, job, _state(folder), _first(scores), size_of(path))


def _state(folder: RunFolder) -> str:
    """The state of a run."""
    if is_locked(folder.path):
        return "training"
    if folder.is_finished:
        return "finished"
    if is_spare(folder.path):
        return "too little time; what was read is kept"
    if folder.data.is_dir():
        return "interrupted, can be resumed"
    return "incomplete; copy the run again"


def _first(scores: dict[str, Any]) -> str:
    """The first score of the run."""
    ours: dict[str, Any] = next(iter(scores.values()), {})
    name, score = next(iter(ours.items()), ("", None))
    return f"{name} {written(name, score.get('value'))}" if score else ""


def _is_alive(process: int) -> bool:
    """Whether a process is still running."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        return True
    return True


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files)
