"""A new run folder, created complete or not at all.

It is built under a temporary name next to its target and renamed when complete, so that bad input,
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
from glassformer.runs.earlier_reading import is_spare
from glassformer.runs.folder import RunFolder

HOME = Path("runs")
LEFT_BEHIND = r"\..+\.new-[0-9a-f]{8}-(?P<process>\d+)"  # temporary names, see below


def free_name(data: str) -> Path:
    """A folder under runs/ named after the data that does not exist yet."""
    stem = re.sub(r"[^\w-]+", "-", Path(data).name.split(".")[0]).strip("-") or "run"
    numbers = ["", *(f"-{n}" for n in range(2, 10_000))]
    return next(HOME / (stem + n) for n in numbers if is_free(HOME / (stem + n)))


def is_free(path: Path) -> bool:
    """Whether a run may be created there."""
    return not path.exists() or is_spare(path)


def refuse_existing(target: Path) -> None:
    """Refuse a folder that is not empty, and the current directory."""
    try:
        if target.absolute() == Path.cwd():
            raise GlassformerError(
                f"{target}: is the current directory; name a folder inside it with --run"
            )
        exists = target.exists() and not (target.is_dir() and not any(target.iterdir()))
    except OSError as error:
        raise cannot_create(target, error) from None
    if (exists and not is_spare(target)) or target.is_symlink():
        folder = RunFolder(target)
        unfinished = folder.config_file.exists() and not folder.is_finished
        resume = f"resume it with `glassformer resume {shlex.quote(str(target))}`, or "
        hint = f"{resume if unfinished else ''}name another with --run"
        raise GlassformerError(f"{target}: already exists; {hint}")


@contextmanager
def under_temporary_name(target: Path) -> Iterator[Path]:
    """A folder that becomes `target` on success and is removed otherwise.

    Its name ends in the process id, which identifies leftovers.
    """
    temporary = target.parent / f".{target.name}.new-{token_hex(4)}-{os.getpid()}"
    missing = [folder for folder in target.parents if not folder.exists()]
    try:
        temporary.mkdir(parents=True)
    except OSError as error:
        remove_empty(missing)
        raise cannot_create(target, error) from None
    try:
        yield temporary
        try:
            if target.is_dir():
                target.rmdir()  # empty, as checked before
            temporary.rename(target)
        except OSError as error:
            raise cannot_create(target, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        remove_empty(missing)


def discard(folder: RunFolder) -> None:
    """Remove a run, and the runs folder if it is now empty."""
    shutil.rmtree(folder.path, ignore_errors=True)  # it may already be gone
    if folder.path.parent == HOME:
        remove_empty([HOME])


def remove_empty(folders: list[Path]) -> None:
    """Remove those of the folders that are empty, innermost first."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def cannot_create(target: Path, error: OSError) -> GlassformerError:
    """The error for a folder that cannot be created."""
    return GlassformerError(
        f"{target}: cannot be created ({error.strerror}); choose another folder with --run"
    )
