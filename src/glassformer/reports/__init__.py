"""How a result is shown: `report.json` for programs, and one page, `report.html`, for people.

Nothing here knows a job. In reading order:

record    the contents of a report
wording   formatting of scores, in pages and in terminals
tables    tables shared by several jobs
page      the report as one HTML file; `markup`, `charts` and `style` are its parts
writing   both files, on disk
"""

from glassformer.reports.record import HeatMap, Report, Sections, Sound, Table
from glassformer.reports.writing import write_report

__all__ = ["HeatMap", "Report", "Sections", "Sound", "Table", "write_report"]
