"""The table by class: each F1 with an interval."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from glassformer.tasks.classify.sections import class_table, f1_interval

CLASSES = ("ant", "bee", "cow")


@pytest.mark.parametrize("multi", [False, True])
def test_every_class_has_its_f1_inside_its_interval(multi):
    dice = np.random.default_rng(0)
    if multi:
        labels, answers = dice.integers(0, 2, (211, 3)), dice.integers(0, 2, (211, 3))
    else:
        labels = dice.integers(0, 3, 211)
        answers = np.where(dice.random(211) < 0.7, labels, dice.integers(0, 3, 211))
    expected = f1_score(labels, answers, average=None)
    table = class_table(labels, answers, CLASSES)
    for row, f1 in zip(table.rows, expected, strict=True):
        _, _, _, found, low, high, _ = row
        assert found == pytest.approx(f1)
        assert low < found < high
        assert high - low < 0.3


def test_more_rows_make_the_interval_narrower():
    dice = np.random.default_rng(0)
    true, given = dice.random(4000) < 0.5, dice.random(4000) < 0.5
    wide, narrow = f1_interval(true[:100], given[:100]), f1_interval(true, given)
    assert narrow.high - narrow.low < 0.5 * (wide.high - wide.low)
