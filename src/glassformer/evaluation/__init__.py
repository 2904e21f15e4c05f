"""Is it any good? Honest baselines to stand beside, and reports that say all that was found."""

from glassformer.evaluation.baseline import NgramBaseline
from glassformer.evaluation.report import Report, write_report

__all__ = ["NgramBaseline", "Report", "write_report"]
