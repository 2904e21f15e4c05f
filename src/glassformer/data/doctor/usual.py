"""The usual checks, as jobs list them."""

from glassformer.data.doctor.check import Check, Names
from glassformer.data.doctor.labels import LabelCounts, LabelOrder
from glassformer.data.doctor.leaks import Leaks
from glassformer.data.doctor.repeats import RepeatedTexts, SharedGroups
from glassformer.data.doctor.rows import EmptyRows, GarbledText


def checks_of_texts(names: Names | None = None) -> list[Check]:
    """For every job that reads text.

    Args:
        names: The labels of a sample, where texts have labels.
    """
    return [EmptyRows(), GarbledText(), RepeatedTexts(names), SharedGroups()]


def checks_of_labels(names: Names, *, rarest: int, most: int) -> list[Check]:
    """For a job whose answers are labels: there may be `most`, each with `rarest` rows at least."""
    return [LabelCounts(names, rarest=rarest, most=most), LabelOrder(names), Leaks(names)]
