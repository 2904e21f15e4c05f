"""Reports on disk: either the old file or the new one is there, never half of one."""

import json
import os
import tempfile
from pathlib import Path

from glassformer.evaluation.report.page import page
from glassformer.evaluation.report.record import Report


def write_report(report: Report, folder: Path) -> None:
    """Write `report.json` and `report.html` into the folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    values = json.dumps(report.as_values(), indent=1, allow_nan=False)
    replace_file(folder / "report.html", page(report))
    replace_file(folder / "report.json", values + "\n")  # last: a run that has it is finished


def replace_file(path: Path, text: str) -> None:
    """Write beside it under another name, and put it in place when it is complete."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~current_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def current_umask() -> int:
    """Which permissions a new file does not get; temporary files get almost none."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
