"""Reports on disk: either the old file or the new one is there, never half of one."""

import json
from pathlib import Path

from glassformer.files import write_text
from glassformer.reports.page import page
from glassformer.reports.record import Report


def write_report(report: Report, folder: Path) -> None:
    """Write `report.json` and `report.html` into the folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    values = json.dumps(report.as_values(), indent=1, allow_nan=False)
    write_text(page(report), folder / "report.html")
    write_text(values + "\n", folder / "report.json")  # last: a run that has it is finished
