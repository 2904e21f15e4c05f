"""Comparisons: chance is called chance, and a planted difference is found."""

import math

import numpy as np
import pytest

from glassformer.metrics.intervals import ratio
from glassformer.metrics.paired import (
    classification_comparison,
    paired_test,
    randomisation_test,
    sign_test,
)
from glassformer.metrics.units import ROWS as ROWS_ALONE, Units

ROWS = 401


def right(random, chance, rows=ROWS):
    return random.random(rows) < chance


def one_hot_answers(random, labels, chance, classes):
    wrong = (labels + random.integers(1, classes, len(labels))) % classes
    return np.eye(classes)[np.where(random.random(len(labels)) < chance, labels, wrong)]


@pytest.mark.parametrize(("wins", "losses"), [(0, 5), (3, 11), (50, 50), (7, 0), (1, 0)])
def test_the_sign_test_counts_coins_exactly(wins, losses):
    tosses = wins + losses
    tail = sum(math.comb(tosses, n) for n in range(min(wins, losses) + 1)) / 2**tosses
    assert sign_test(wins, losses) == pytest.approx(min(1, 2 * tail))
    assert sign_test(wins, losses) == sign_test(losses, wins)


def test_the_sign_test_does_not_overflow_on_many_rows():
    assert sign_test(30_000, 20_000) < 1e-300
    assert sign_test(25_000, 25_000) == 1


def test_identical_systems_differ_by_chance():
    answers = right(np.random.default_rng(0), 0.8)
    found = paired_test(answers, answers)
    assert found.p_value == 1
    assert found.difference.value == 0
    assert found.difference.low == pytest.approx(-found.difference.high)
    assert 0 < found.difference.high < 0.01
    assert (found.wins, found.losses, found.ties) == (0, 0, ROWS)


def test_wins_losses_and_ties_are_counted():
    first = np.array([1, 1, 1, 0, 0, 1, 0] * 3, dtype=bool)
    second = np.array([0, 0, 1, 0, 1, 0, 0] * 3, dtype=bool)
    found = paired_test(first, second)
    assert (found.wins, found.losses, found.ties) == (9, 3, 9)
    assert found.difference.value == pytest.approx(2 / 7)
    assert "+0.286" in str(found)
    assert "9 better, 3 worse, 9 the same" in str(found)
    assert found.as_values()["p_value"] == found.p_value


def test_too_few_rows_have_no_p_value_and_the_comparison_says_why():
    found = paired_test(np.ones(7, dtype=bool), np.zeros(7, dtype=bool))
    why = "too few rows for a comparison: 7, of at least 15"
    assert (found.p_value, found.difference.interval, found.reason) == (None, None, why)
    assert str(found) == f"+1.000 ({why}); 7 better, 0 worse, 0 the same"
    values = found.as_values()
    assert (values["p_value"], values["reason"]) == (None, why)
    assert values["difference"]["interval"] is None


def test_rows_of_one_group_count_as_one():
    random, owner = np.random.default_rng(7), np.repeat(np.arange(20), 20)
    alarms = {"rows": 0, "groups": 0}
    for _ in range(60):
        chances = random.beta(3.2, 0.8, (2, 20))[:, owner]  # the first is better in some groups
        first, second = random.random((2, 400)) < chances
        by_row, by_group = (paired_test(first, second, u) for u in (ROWS_ALONE, Units("g", owner)))
        assert by_group.difference.value == pytest.approx(by_row.difference.value)
        alarms["rows"] += by_row.p_value < 0.05
        alarms["groups"] += by_group.p_value < 0.05
    assert alarms["groups"] <= 7 < alarms["rows"]


def test_which_system_comes_first_turns_the_sign_and_nothing_else():
    random = np.random.default_rng(0)
    first, second = right(random, 0.8), right(random, 0.7)
    there, back = paired_test(first, second), paired_test(second, first)
    assert there.difference.value == -back.difference.value
    assert there.p_value == back.p_value
    assert (there.wins, there.losses) == (back.losses, back.wins)


def test_a_planted_difference_is_found():
    random = np.random.default_rng(1)
    found = paired_test(right(random, 0.9), right(random, 0.75))
    assert found.p_value < 0.001
    assert 0 < found.difference.low < 0.15 < found.difference.high


def test_p_values_of_equal_systems_are_spread_evenly():
    random = np.random.default_rng(2)
    p = np.array([paired_test(right(random, 0.7), right(random, 0.7)).p_value for _ in range(300)])
    assert (p <= 0.05).mean() <= 0.08
    assert (p <= 0.5).mean() == pytest.approx(0.45, abs=0.1)  # exact tests lie a little low


def test_p_values_by_randomisation_are_spread_evenly():
    random, ones = np.random.default_rng(3), np.ones(101)
    p = []
    for trial in range(200):
        first, second = random.normal(size=101), random.normal(size=101)
        p.append(
            randomisation_test(
                ratio,
                (first, ones),
                (second, ones),
                better=first - second,
                resamples=199,
                seed=trial,
            ).p_value
        )
    assert (np.array(p) <= 0.05).mean() <= 0.09
    assert np.mean(p) == pytest.approx(0.5, abs=0.08)


def test_randomisation_agrees_with_the_exact_test():
    random, ones = np.random.default_rng(4), np.ones(ROWS)
    first, second = right(random, 0.8), right(random, 0.76)
    exact = paired_test(first, second)
    drawn = randomisation_test(
        ratio, (first, ones), (second, ones), better=first * 1 - second, resamples=4000
    )
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.03)
    assert drawn.difference.low == pytest.approx(exact.difference.low, abs=0.01)
    assert (drawn.wins, drawn.losses, drawn.ties) == (exact.wins, exact.losses, exact.ties)


def test_classifiers_are_compared_by_accuracy_and_macro_f1():
    random, classes = np.random.default_rng(5), 5
    labels = random.integers(0, classes, ROWS)
    first = one_hot_answers(random, labels, 0.9, classes)
    second = one_hot_answers(random, labels, 0.7, classes)
    found = classification_comparison(labels, first, second)
    assert list(found) == ["accuracy", "macro_f1"]
    assert all(c.p_value < 0.01 and c.difference.low > 0 for c in found.values())
    same = classification_comparison(labels, first, first)
    assert all(c.p_value == 1 and c.difference.value == 0 for c in same.values())


def test_classifiers_of_several_labels_are_compared_likewise():
    random = np.random.default_rng(6)
    labels = random.integers(0, 2, (ROWS, 3))
    first = np.where(random.random(labels.shape) < 0.95, labels, 1 - labels).astype(float)
    second = np.where(random.random(labels.shape) < 0.8, labels, 1 - labels).astype(float)
    found = classification_comparison(labels, first, second)
    assert all(c.p_value < 0.01 and c.difference.low > 0 for c in found.values())
    exact = (first == labels).all(axis=1).mean() - (second == labels).all(axis=1).mean()
    assert found["accuracy"].difference.value == pytest.approx(exact)


@pytest.mark.usefixtures("without_shape_hook")
@pytest.mark.parametrize("sizes", [(3, 4), (0, 0)])
def test_systems_that_answered_other_rows_are_refused(sizes):
    with pytest.raises(ValueError, match="both systems' answers to the same rows"):
        paired_test(*(np.ones(size, dtype=bool) for size in sizes))
