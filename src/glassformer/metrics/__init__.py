"""How good is it? Scores with intervals, calibration, and whether a difference is real.

Everything takes numpy arrays and knows nothing of models. `classification` has the scores of the
first job. `ratios` gives shares and rates their intervals, `calibration_error` has one of its own,
and `intervals` serves any other score that is a function of sums over rows, so a new job's scores
bring their sums and nothing else.
"""

from glassformer.metrics.calibration import Bin, fit_temperature, probabilities_of, reliability
from glassformer.metrics.classification import (
    ClassScores,
    class_scores,
    classification_scores,
    confusion_intervals,
    confusion_matrix,
    multi_label_scores,
)
from glassformer.metrics.intervals import bootstrap
from glassformer.metrics.paired import (
    Comparison,
    classification_comparison,
    multi_label_comparison,
    paired_test,
    randomisation_test,
)
from glassformer.metrics.ratios import rate_score, share_score
from glassformer.metrics.score import Score

__all__ = [
    "Bin",
    "ClassScores",
    "Comparison",
    "Score",
    "bootstrap",
    "class_scores",
    "classification_comparison",
    "classification_scores",
    "confusion_intervals",
    "confusion_matrix",
    "fit_temperature",
    "multi_label_comparison",
    "multi_label_scores",
    "paired_test",
    "probabilities_of",
    "randomisation_test",
    "rate_score",
    "reliability",
    "share_score",
]
