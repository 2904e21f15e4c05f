"""Reports on disk: either the old file or the new one is there, never half of one."""

from pathlib import Path

from glassformer.files import write_json, write_text
from glassformer.reports.page import page
from glassformer.reports.record import Report


def write_report(report: Report, folder: Path) -> None:
    """Write `report.json` and `report.html` into the folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(page(report), folder / "report.html")
    write_json(report.as_values(), folder / "report.json")  # last: a run that has it is finished
