"""The table by class: each F1 with an interval."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import f1_score

from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_sections import class_table, f1_interval

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


def test_a_class_of_fewer_than_five_rows_has_no_interval_and_is_told():
    labels = np.array([0] * 9 + [1] * 5 + [2] * 4)
    table = class_table(labels, labels, ("a", "b", "c"))
    assert [row[4:6] == (None, None) for row in table.rows] == [False, False, True]
    task = SimpleNamespace(labels=SimpleNamespace(names=("a", "b", "c", "d")))
    chances = np.eye(4)[labels]
    [note] = ClassifyReporter(task).notes(ClassAnswers.of_probabilities(chances, labels))
    assert note.startswith("2 labels have fewer than 5 scored rows: 'c' (4), 'd' (0); scores")
    many = ClassAnswers.of_probabilities(np.eye(4), np.arange(4))
    assert ClassifyReporter(task).notes(ClassifyReporter(task).pool([many] * 5)) == []
