"""Checksums of a run's files: a file that changed since it was written is refused.

They are stored in checksums.json, computed when files are final: inputs of training when the folder
is created, results when training ends. A file without a checksum is not checked: runs of older
versions have none, and neither does what training is about to write.
"""

from collections.abc import Container, Iterator
from pathlib import Path

from glassformer.errors import GlassformerError
from glassformer.files import checksum, write_json
from glassformer.runs.folder import read_json

CHECKSUMS = "checksums.json"
KINDS = (".json", ".toml", ".safetensors", ".npy")
REMADE = ("model.safetensors", "report.json")  # by `resume`, from checkpoints


def note_checksums(run: Path, *names: str) -> None:
    """Store the checksums of these files, or of all that have none yet."""
    known = known_checksums(run)
    new = {
        name: checksum(path)
        for name, path in files_in(run)
        if name not in known and (not names or name in names)
    }
    write_json(known | new, run / CHECKSUMS)


def renew_checksum(run: Path, name: str) -> None:
    """Store the checksum of a file that was written again."""
    write_json(known_checksums(run) | {name: checksum(run / name)}, run / CHECKSUMS)


def forget_checksum(run: Path, name: str) -> None:
    """Drop the checksum of a file that is about to be replaced."""
    write_json(
        {key: one for key, one in known_checksums(run).items() if key != name}, run / CHECKSUMS
    )


def drop_checksums(run: Path) -> None:
    """Drop the checksums of files that the end of training rewrites."""
    known = known_checksums(run)
    if known:
        kept = {name: expected for name, expected in known.items() if name.startswith("data/")}
        write_json(kept, run / CHECKSUMS)


def refuse_changed(run: Path, *, data: bool, but: Container[str] = ()) -> None:
    """Refuse a run with a file that changed since it was written.

    Args:
        data: Whether to check the samples and their index, too.
        but: Files that may have changed.
    """
    known = known_checksums(run)
    for name, path in files_in(run, data=data):
        if name in known and name not in but and checksum(path) != known[name]:
            raise GlassformerError(
                f"{path}: changed since the run wrote it; copy the run again, or remove "
                f"{CHECKSUMS} if you changed it on purpose"
            )


def is_as_written(run: Path, name: str) -> bool:
    """Whether a file still matches its checksum; True if it has none."""
    expected = known_checksums(run).get(name)
    return expected is None or checksum(run / name) == expected


def known_checksums(run: Path) -> dict[str, str]:
    """Checksums by file name; empty for a run of an older version."""
    return read_json(run / CHECKSUMS)


def files_in(run: Path, *, data: bool = True) -> Iterator[tuple[str, Path]]:
    """The files of a run with their names; not those that grow, such as metrics.jsonl."""
    for path in sorted([*run.glob("*"), *((run / "data").glob("*") if data else ())]):
        if path.suffix in KINDS and path.name != CHECKSUMS and path.is_file():
            yield path.relative_to(run).as_posix(), path
