"""Scores of classifiers, against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn import metrics as reference

from glassformer.metrics.calibration import reliability
from glassformer.metrics.classification import (
    THRESHOLDS,
    accuracy_and_micro_f1,
    choose_threshold,
    class_scores,
    classification_scores,
    confusion_intervals,
    confusion_matrix,
)
from glassformer.metrics.paired import classification_comparison

ROWS, CLASSES = 307, 5


def answers_of(seed=0, rows=ROWS, classes=CLASSES):
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, rows)
    logits = random.normal(size=(rows, classes))
    logits[np.arange(rows), labels] += 1
    exponents = np.exp(logits)
    return labels, exponents / exponents.sum(axis=1, keepdims=True)


def several_labels(seed=0, rows=ROWS, classes=CLASSES):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, (rows, classes))
    return labels, np.clip(labels * 0.4 + random.random((rows, classes)) * 0.6, 0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_scikit_learn(seed):
    labels, probabilities = answers_of(seed)
    answers = probabilities.argmax(axis=1)
    scores = classification_scores(labels, probabilities)
    assert list(scores) == ["accuracy", "macro_f1", "calibration_error"]
    assert scores["accuracy"].value == pytest.approx(reference.accuracy_score(labels, answers))
    assert scores["macro_f1"].value == pytest.approx(
        reference.f1_score(labels, answers, average="macro")
    )


def test_macro_f1_is_over_classes_that_are_true_or_given():
    labels = np.array([0, 0, 1, 1])
    probabilities = np.eye(7)[[0, 0, 1, 2]]  # class 2 is given and never true; 3 to 6 are neither
    score = classification_scores(labels, probabilities)["macro_f1"]
    assert score.value == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert score.value == pytest.approx(
        reference.f1_score(labels, probabilities.argmax(axis=1), average="macro")
    )


@pytest.mark.parametrize("seed", range(3))
def test_scores_by_class_are_those_of_scikit_learn(seed):
    labels, probabilities = answers_of(seed)
    answers = probabilities.argmax(axis=1)
    expected = reference.precision_recall_fscore_support(labels, answers)
    found = class_scores(labels, answers, CLASSES)
    assert [s.precision for s in found] == pytest.approx(expected[0])
    assert [s.recall for s in found] == pytest.approx(expected[1])
    assert [s.f1 for s in found] == pytest.approx(expected[2])
    assert [s.support for s in found] == expected[3].tolist()


def test_a_class_that_never_occurs_scores_zero_and_nothing_breaks():
    absent = class_scores(np.array([0, 1]), np.array([0, 1]), 3)[2]
    assert (absent.precision, absent.recall, absent.f1, absent.support) == (0, 0, 0, 0)


def test_confusions_are_those_of_scikit_learn():
    labels, probabilities = answers_of()
    answers = probabilities.argmax(axis=1)
    expected = reference.confusion_matrix(labels, answers)
    assert (confusion_matrix(labels, answers, CLASSES) == expected).all()


def test_a_cell_of_the_confusions_moves_as_a_binomial_count_does():
    low, high = confusion_intervals(np.array([[900, 0], [64, 36]]))
    assert (low[0, 1], high[0, 1]) == (0, 4)  # none of a thousand rows may be some of the next
    spread = 1.96 * np.sqrt(1000 * 0.064 * (1 - 0.064))
    assert low[1, 0] == pytest.approx(64 - spread, abs=3)
    assert high[1, 0] == pytest.approx(64 + spread, abs=3)
    assert not np.any(confusion_intervals(np.zeros((2, 2), dtype=np.int64)))


def test_scores_of_several_labels_are_those_of_scikit_learn():
    labels, probabilities = several_labels()
    given = probabilities >= 0.5
    scores = classification_scores(labels, probabilities)
    assert list(scores) == ["accuracy", "macro_f1", "micro_f1", "calibration_error"]
    assert scores["accuracy"].value == pytest.approx(reference.accuracy_score(labels, given))
    for average in ("macro", "micro"):
        expected = reference.f1_score(labels, given, average=average)
        assert scores[f"{average}_f1"].value == pytest.approx(expected)
    expected = reference.precision_recall_fscore_support(labels, given)
    assert [s.f1 for s in class_scores(labels, given, CLASSES)] == pytest.approx(expected[2])


def test_a_label_nobody_has_and_nobody_gives_does_not_count():
    labels, probabilities = several_labels()
    silent = np.zeros((ROWS, 1))
    more = classification_scores(
        np.concatenate([labels, silent], axis=1), np.concatenate([probabilities, silent], axis=1)
    )
    assert more["macro_f1"].value == pytest.approx(
        classification_scores(labels, probabilities)["macro_f1"].value
    )


def test_calibration_error_is_the_mean_distance_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.3, 0.7]])
    labels = np.array([0, 1, 1, 1])  # sure 0.9 and half right; sure 0.7 and always right
    score = classification_scores(labels, probabilities)["calibration_error"]
    assert score.value == pytest.approx((2 * 0.4 + 2 * 0.3) / 4)


def test_calibration_error_is_that_of_the_definition():
    labels, probabilities = answers_of(rows=1009)
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    expected = 0.0
    for low in np.arange(15) / 15:
        inside = (sure > low) & (sure <= low + 1 / 15)
        if inside.any():
            expected += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    score = classification_scores(labels, probabilities)["calibration_error"]
    assert score.value == pytest.approx(expected)


def test_calibration_of_several_labels_counts_every_label():
    labels, probabilities = np.array([[1, 0], [1, 1]]), np.array([[0.9, 0.1], [0.9, 0.1]])
    score = classification_scores(labels, probabilities)["calibration_error"]
    assert score.value == pytest.approx((2 * 0.1 + 2 * 0.4) / 4)


def test_the_interval_of_a_well_calibrated_model_reaches_towards_zero():
    random = np.random.default_rng(0)
    sure = random.uniform(0.5, 1, 997)
    probabilities = np.stack([sure, 1 - sure], axis=1)
    labels = (random.random(997) > sure).astype(int)
    score = classification_scores(labels, probabilities)["calibration_error"]
    assert 0 <= score.low < score.value / 2
    assert score.high < 3 * score.value


def test_reliability_tells_how_sure_and_how_often_right():
    sure, right = np.array([0.95, 0.99, 0.5, 0.0, 1.0]), np.array([1, 0, 1, 0, 1])
    bins = reliability(sure, right, bins=10)
    assert [(b.low, b.high, b.count) for b in bins] == [(0.0, 0.1, 1), (0.4, 0.5, 1), (0.9, 1.0, 3)]
    assert bins[-1].confidence == pytest.approx(0.98)
    assert bins[-1].accuracy == pytest.approx(2 / 3)


def test_every_interval_holds_its_value():
    labels, probabilities = answers_of(rows=53)
    many, chances = several_labels(rows=53)
    for scores in (
        classification_scores(labels, probabilities),
        classification_scores(many, chances),
    ):
        assert all(0 <= s.low <= s.value <= s.high <= 1 for s in scores.values())


def test_one_row_and_one_class_are_fine():
    scores = classification_scores(np.array([0]), np.array([[1.0]]))
    assert scores["accuracy"].value == scores["macro_f1"].value == 1
    assert scores["calibration_error"].value == 0


@pytest.mark.parametrize(
    ("labels", "probabilities", "complaint"),
    [
        (np.array([0, 3]), np.full((2, 3), 1 / 3), r"labels must lie in 0 \.\.\. 2"),
        (np.array([-1, 1]), np.full((2, 3), 1 / 3), r"got -1 \.\.\. 1"),
        (np.array([0]), np.array([[np.nan, 1.0]]), "probabilities must lie in 0"),
        (np.array([0]), np.array([[7.0, 1.0]]), "probabilities must lie in 0"),
        (np.zeros(0, dtype=int), np.zeros((0, 2)), "at least one row"),
    ],
)
def test_what_no_score_can_be_made_of_is_refused(labels, probabilities, complaint):
    with pytest.raises(ValueError, match=complaint):
        classification_scores(labels, probabilities)


def test_labels_that_are_neither_zero_nor_one_are_refused():
    with pytest.raises(ValueError, match="a 0 or 1 for each column; got 2"):
        classification_scores(np.full((2, 3), 2), np.full((2, 3), 0.5))


@pytest.mark.parametrize("rows", [20, 211])
def test_a_threshold_has_the_largest_sum_of_accuracy_and_micro_f1(rows):
    random = np.random.default_rng(rows)
    labels = (random.random((rows, 5)) < 0.2).astype(int)
    chances = np.clip(0.3 * labels + 0.4 * random.random((rows, 5)), 0, 1).round(2)
    by_hand = {}
    for threshold in THRESHOLDS.tolist():
        given = chances >= threshold
        hits, named = (labels * given).sum(), labels.sum() + given.sum()
        by_hand[threshold] = (labels == given).all(axis=1).mean() + 2 * hits / named
    assert accuracy_and_micro_f1(labels, chances) == pytest.approx([*by_hand.values()])
    found = choose_threshold(labels, chances)
    assert by_hand[found] == pytest.approx(max(by_hand.values()))
    assert found < 0.5
    assert choose_threshold(labels[:19], chances[:19]) == 0.5, "so few rows choose none"
    assert choose_threshold(labels, labels.astype(float)) == 0.5, "all are equally good"


def test_scores_and_comparisons_are_those_at_the_threshold_of_each_system():
    labels = np.array([[1, 0], [0, 1], [1, 1]])
    chances = np.where(labels, 0.35, 0.1)
    assert classification_scores(labels, chances)["accuracy"].value == 0
    assert classification_scores(labels, chances, 0.3)["micro_f1"].value == 1
    found = classification_comparison(labels, chances, chances, (0.3, 0.5))["accuracy"]
    assert found.difference.value == 1
