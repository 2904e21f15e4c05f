"""How a result is shown: `report.json` for programs, and one page, `report.html`, for people.

Nothing here knows a job. In reading order:

record    the contents of a report
wording   formatting of scores, in pages and in terminals
tables    tables shared by several jobs
page      both files; `markup`, `charts` and `style` are parts of the page
variants, variants_page   variants of a run, side by side
"""

from glassformer.reports.page import write_report
from glassformer.reports.record import HeatMap, Report, Sections, Sound, Table
