"""A new run folder: whole or not at all.

It is made under a temporary name beside its place and renamed when it is whole, so that bad input,
an error or a kill leaves nothing half-written.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from glassformer.errors import GlassformerError
from glassformer.runs.folder import RunFolder

HOME = Path("runs")
LEFT_BEHIND = r"\..+\.new-[0-9a-f]{8}-(?P<process>\d+)"  # temporary names, as made below


def free_name(data: str) -> Path:
    """A folder under runs/ named after the data that is not there yet."""
    stem = re.sub(r"[^\w-]+", "-", Path(data).name.split(".")[0]).strip("-") or "run"
    numbers = ["", *(f"-{n}" for n in range(2, 10_000))]
    return next(HOME / (stem + n) for n in numbers if not (HOME / (stem + n)).exists())


def refuse_taken(target: Path) -> None:
    """A folder with something in it is not written over, nor the one we stand in."""
    try:
        if target.absolute() == Path.cwd():
            raise GlassformerError(
                f"{target}: is where you are; name a folder inside it with --run"
            )
        taken = target.exists() and not (target.is_dir() and not any(target.iterdir()))
    except OSError as error:
        raise cannot_be_made(target, error) from None
    if taken or target.is_symlink():
        folder = RunFolder(target)
        begun = folder.config_file.exists() and not folder.is_finished
        resume = f"go on with `glassformer resume {shlex.quote(str(target))}`, or "
        hint = f"{resume if begun else ''}name another with --run"
        raise GlassformerError(f"{target}: already exists; {hint}")


@contextmanager
def under_temporary_name(target: Path) -> Iterator[Path]:
    """A folder that becomes `target` when all goes well, and vanishes otherwise.

    Its name ends in the number of this process, by which a leftover is known.
    """
    temporary = target.parent / f".{target.name}.new-{token_hex(4)}-{os.getpid()}"
    missing = [folder for folder in target.parents if not folder.exists()]
    try:
        temporary.mkdir(parents=True)
    except OSError as error:
        remove_empty(missing)
        raise cannot_be_made(target, error) from None
    try:
        yield temporary
        try:
            if target.is_dir():
                target.rmdir()  # empty, as was seen before
            temporary.rename(target)
        except OSError as error:
            raise cannot_be_made(target, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        remove_empty(missing)


def discard(folder: RunFolder) -> None:
    """Remove a run, and the folder of runs around it if nothing else is there."""
    shutil.rmtree(folder.path, ignore_errors=True)  # it may be gone, and that is why
    if folder.path.parent == HOME:
        remove_empty([HOME])


def remove_empty(folders: list[Path]) -> None:
    """Remove folders, innermost first, as far as nothing is in them."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def cannot_be_made(target: Path, error: OSError) -> GlassformerError:
    """The words for a place that cannot be written to."""
    return GlassformerError(
        f"{target}: cannot be made ({error.strerror}); choose another place with --run"
    )
