"""Reports on disk, written atomically."""

from pathlib import Path

from glassformer.files import write_json, write_text
from glassformer.reports.page import page
from glassformer.reports.record import Report


def write_report(report: Report, folder: Path) -> None:
    """Write `report.json` and `report.html` into the folder, creating it if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(page(report), folder / "report.html")
    write_json(report.as_values(), folder / "report.json")  # last: it marks a run as finished
