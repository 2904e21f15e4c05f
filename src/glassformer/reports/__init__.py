"""How a result is shown: `report.json` for machines, and one page, `report.html`, for people.

Any job's: nothing here knows one. In the order to read them:

record    what a report holds
wording   scores as people write them, in pages and in terminals
tables    tables that several jobs have
page      the report as one HTML file; `markup`, `charts` and `style` are its parts
writing   both files, on disk
"""

from glassformer.reports.record import HeatMap, Report, Sections, Table
from glassformer.reports.writing import write_report

__all__ = ["HeatMap", "Report", "Sections", "Table", "write_report"]
