"""What an earlier try has read: the next one takes its samples and features over.

A run that was killed, or whose time budget was too short to train, leaves a folder with all that it
has read and no model. `reading.json` in it says of which files, and by which settings; those of
training and of the machine may differ. If nothing has changed, another run in the same place need
not read it again. A folder that is kept for nothing else holds the file `.spare`: the next run
takes its place.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from glassformer.config.run import Config, config_of
from glassformer.config.values import plain
from glassformer.data.catalog import CATALOG
from glassformer.data.rows import InMemory
from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.files import to_json, write_json
from glassformer.runs.folder import RunFolder, read_record
from glassformer.runs.lock import is_locked
from glassformer.tasks import JOBS
from glassformer.training.machine import choose_machine

RECORD, SPARE = "reading.json", ".spare"
OF_TRAINING = ("train", "machine", "curve", "baseline")  # settings that reading does not depend on


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a run has read.

    Attributes:
        settings: A digest of the job and of all settings that reading depends on.
        sources: A digest of the names, sizes and times of all files that were read.
        files: What it has written.
        settled: The settings that preparing the samples has settled.
    """

    settings: str
    sources: str
    files: tuple[str, ...]
    settled: dict[str, Any]

    def config(self, resolved: Config) -> Config:
        """The settings of another run of the same samples, as if it had prepared them."""
        values = plain(resolved) | self.settled
        return config_of(values, JOBS[resolved.job].settings)


def note_reading(asked: Config, settled: Config, samples: Samples, folder: RunFolder) -> None:
    """Write down what was read, unless it cannot be known whether it changes.

    Args:
        asked: The settings as requested, before any sample was read.
        settled: The same after preparing the samples.
    """
    sources = digest_of_sources(asked, samples)
    if sources is None:
        return
    values = plain(settled)
    found = Reading(
        settings=digest_of_settings(asked),
        sources=sources,
        files=tuple(sorted(path.name for path in folder.path.iterdir())),
        settled={name: values[name] for name in ("task", "data", "model", "pretrain")},
    )
    write_json(asdict(found), folder.path / RECORD)


def earlier_reading(asked: Config, home: Path) -> tuple[RunFolder, Reading] | None:
    """An unfinished run in a folder that has read the same files by the same settings, if any."""
    settings = digest_of_settings(asked)
    for path in sorted(home.glob(f"*/{RECORD}")):
        folder = RunFolder(path.parent)
        try:
            found = read_record(path, Reading)
            if found is None or found.settings != settings or not is_untrained(folder):
                continue
            if found.sources == digest_of_sources(asked, Samples.open(folder.data)):
                return folder, found
        except (GlassformerError, OSError, ValueError):  # harmed; it is read again
            continue
    return None


def take_over(folder: RunFolder, reading: Reading, path: Path) -> None:
    """Put what a run has read into another folder: moved if the run is spare, else copied."""
    for name in reading.files:
        source, target = folder.path / name, path / name
        if is_spare(folder.path):
            os.rename(source, target)
        elif source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
    shutil.copy2(folder.path / RECORD, path / RECORD)


def keep_as_spare(path: Path) -> bool:
    """Keep a run folder for what it has read alone; False if it has nothing to reuse."""
    if not (path / RECORD).exists():
        return False
    (path / SPARE).touch()
    return True


def is_spare(path: Path) -> bool:
    """Whether a folder is there for what it has read alone, so that another run may replace it."""
    folder = RunFolder(path)
    return (path / SPARE).exists() and is_untrained(folder) and not folder.checkpoints.exists()


def is_untrained(folder: RunFolder) -> bool:
    """Whether a run has no model, nor is getting one now."""
    return not folder.model.exists() and not is_locked(folder.path)


def digest_of_settings(config: Config) -> str:
    """A digest of all that reading depends on but the files."""
    values = {key: one for key, one in plain(config).items() if key not in OF_TRAINING}
    values["device"] = choose_machine(config.machine).device.type  # which chooses defaults
    return digest([to_json(values)])


def digest_of_sources(config: Config, samples: Samples) -> str | None:
    """A digest of the names, sizes and times of all files; None where these cannot be known."""
    data = config.data
    names = [*data.files, *data.valid, *data.test, *data.unlabelled]
    known = (Path(name).exists() or name in CATALOG for name in names)
    if config.origin or config.own_model or not all(known):
        return None
    if any(isinstance(name, InMemory) for name in names):
        return None
    named = "path" in (samples.spools or samples[0])
    paths = [*names, *(samples.values("path") if named else ())]
    return digest(line for path in paths for line in states_of(Path(path)))


def states_of(path: Path) -> Iterator[str]:
    """A line on each file of a folder, or on a file: its name, size and time."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        try:
            state = file.stat()
        except OSError:  # of the catalog
            yield str(file)
        else:
            yield f"{file.resolve()} {state.st_size} {state.st_mtime_ns}"


def digest(lines: Iterable[str]) -> str:
    """A short digest of some lines."""
    found = hashlib.blake2b(digest_size=16)
    for line in lines:
        found.update(line.encode("utf-8", "surrogateescape") + b"\n")
    return found.hexdigest()
