"""Checksums of a run's files: what changed since the run wrote it is refused, not used.

They lie in checksums.json, taken when files have come to their final form: of what training reads
when the folder is made, of what it leaves behind at its end. A file without one is not checked:
runs of older versions have none, and what training is about to write must have none.
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
    """Take the checksums of these files, or of all that have none yet."""
    known = known_checksums(run)
    new = {
        name: checksum(path)
        for name, path in files_in(run)
        if name not in known and (not names or name in names)
    }
    write_json(known | new, run / CHECKSUMS)


def drop_checksums(run: Path) -> None:
    """Forget the checksums of what is written anew at the end of a training, before it is."""
    known = known_checksums(run)
    if known:
        kept = {name: expected for name, expected in known.items() if name.startswith("data/")}
        write_json(kept, run / CHECKSUMS)


def refuse_changed(run: Path, *, data: bool, but: Container[str] = ()) -> None:
    """Refuse a run of whose files one is not as it was written.

    Args:
        data: Whether the samples and their index are looked at, too.
        but: Names of files that may have changed.
    """
    known = known_checksums(run)
    for name, path in files_in(run, data=data):
        if name in known and name not in but and checksum(path) != known[name]:
            raise GlassformerError(
                f"{path}: changed since the run wrote it; copy the run again, or remove "
                f"{CHECKSUMS} if you changed it on purpose"
            )


def is_as_written(run: Path, name: str) -> bool:
    """Whether a file of a run has not changed since it was written, as far as anybody knows."""
    expected = known_checksums(run).get(name)
    return expected is None or checksum(run / name) == expected


def known_checksums(run: Path) -> dict[str, str]:
    """By name; none in a run of an older version."""
    return read_json(run / CHECKSUMS)


def files_in(run: Path, *, data: bool = True) -> Iterator[tuple[str, Path]]:
    """The files that a run is made of, by name; not those that grow, such as metrics.jsonl."""
    for path in sorted([*run.glob("*"), *((run / "data").glob("*") if data else ())]):
        if path.suffix in KINDS and path.name != CHECKSUMS and path.is_file():
            yield path.relative_to(run).as_posix(), path
