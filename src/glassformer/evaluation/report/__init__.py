"""What was found, as `report.json` for machines and as one page, `report.html`, for people.

`record` is what a report holds, whatever the job; `page` lays it out; `charts` draws; `wording`
writes scores, in the terminal too; each job that has more to show makes its tables in a file of its
own, as `classification` does.
"""

from glassformer.evaluation.report.classification import (
    Sections,
    classification_sections,
    comparison_table,
    side_by_side,
)
from glassformer.evaluation.report.record import HeatMap, Report, Table
from glassformer.evaluation.report.writing import write_report

__all__ = [
    "HeatMap",
    "Report",
    "Sections",
    "Table",
    "classification_sections",
    "comparison_table",
    "side_by_side",
    "write_report",
]
