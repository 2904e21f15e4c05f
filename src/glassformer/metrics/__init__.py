"""Scores with intervals, calibration, and paired tests of two systems.

Everything takes numpy arrays and knows nothing of models. `classification` and `translation` have
the scores. `ratios` has the intervals of shares and rates, `calibration_error` its own, and
`intervals` those of any other score that is a function of sums over rows; a new job's scores bring
their sums and nothing else. `paired` compares two systems, `styles` says how scores are written.
"""

from glassformer.metrics.calibration import Bin, fit_temperature, reliability, to_probabilities
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
    "randomisation_test",
    "rate_score",
    "reliability",
    "share_score",
    "to_probabilities",
]
