"""The doctor: what is wrong with data, row by row, before a model learns from it.

    Reading -> Specimen -> Check, Check, Check ... -> Finding -> Examination -> a cleaned copy

Every row passes every check once, so data may be larger than memory. A job says in its `checks`
what is looked for (see `tasks.job`); what a check is, and how to add one, is in `check`.
"""

from glassformer.data.doctor.check import Check, Specimen
from glassformer.data.doctor.cleaning import Cleaned
from glassformer.data.doctor.examination import Examination, examine, examine_samples
from glassformer.data.doctor.finding import Finding
from glassformer.data.doctor.lengths import Lengths
from glassformer.data.doctor.reading import Reading
from glassformer.data.doctor.usual import checks_of_labels, checks_of_texts

__all__ = [
    "Check",
    "Cleaned",
    "Examination",
    "Finding",
    "Lengths",
    "Reading",
    "Specimen",
    "checks_of_labels",
    "checks_of_texts",
    "examine",
    "examine_samples",
]
