"""Intervals of ratios: Wilson's for single trials, and what rows of several trials make of it."""

import numpy as np
import pytest
from scipy.stats import binomtest

from glassformer.metrics.classification import classification_scores
from glassformer.metrics.error_rates import (
    character_error_rate,
    exact_match,
    mismatch,
    word_error_rate,
)
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import share_difference
from glassformer.metrics.ratios import rate_score, share_score


def share(hits, trials, **settings):
    return share_score(np.arange(trials) < hits, np.ones(trials), **settings)


@pytest.mark.parametrize(("hits", "trials"), [(50, 50), (0, 31), (29, 30), (797, 997), (1, 1)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_a_share_of_single_rows_has_the_interval_of_wilson(hits, trials, level):
    expected = binomtest(hits, trials).proportion_ci(level, method="wilson")
    found = share(hits, trials, level=level)
    assert found.value == hits / trials
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_every_score_of_a_classifier_that_is_always_right_leaves_room_below():
    labels = np.arange(50) % 3
    one_of_each = classification_scores(labels, np.eye(3)[labels])
    several = classification_scores(np.eye(3)[labels], np.eye(3)[labels])
    for scores in (one_of_each, several):
        error = scores.pop("calibration_error")
        assert error.value == error.low == 0
        assert 0.02 < error.high < 0.2
        for name, score in scores.items():
            assert score.value == score.high == 1, name
            assert 0.9 < score.low < 0.94, name


def test_translations_that_are_all_right_leave_room_for_errors():
    answers = [f"word {number}" for number in range(50)]
    references = [[answer] for answer in answers]
    assert str(exact_match(answers, references).score()) == "1.000 [0.929, 1.000]"
    assert str(mismatch(answers, references).score()) == "0.000 [0.000, 0.071]"
    for measure in (word_error_rate, character_error_rate):
        score = measure(answers, references).score()
        assert score.value == score.low == 0
        assert 0.05 < score.high < 0.1


def test_counts_of_equal_rows_give_the_interval_of_the_rows():
    counted = share_score(np.array([1, 0]), np.ones(2), counts=np.array([797, 200]))
    apart = share(797, 997)
    assert counted.as_values() == pytest.approx(apart.as_values())


def test_a_mean_over_columns_leaves_out_those_without_a_whole():
    part, whole = np.array([[1, 1, 0], [1, 0, 0]]), np.array([[1, 1, 0], [1, 1, 0]])
    assert share_score(part, whole) == share_score(part[:, :2], whole[:, :2])
    assert share_score(part, whole).value == 0.75


def test_a_share_of_nothing_may_be_anything():
    assert share_score(np.zeros(3), np.zeros(3)) == Score(0.0, 0.0, 1.0)


def test_a_rate_of_nothing_is_nan():
    score = rate_score(np.zeros(3), np.zeros(3))
    assert np.isnan([score.value, score.low, score.high]).all()


def test_a_rate_may_exceed_one():
    score = rate_score(np.array([3.0, 5, 2, 4]), np.array([2.0, 3, 2, 2]))
    assert score.low < score.value == 14 / 9 < score.high


@pytest.mark.parametrize(("wins", "losses", "rows"), [(0, 0, 53), (7, 0, 7), (0, 11, 53)])
def test_a_difference_of_shares_has_an_interval_around_it(wins, losses, rows):
    score = share_difference(wins, losses, rows)
    assert score.value == (wins - losses) / rows
    assert -1 <= score.low <= score.value <= score.high <= 1
    assert score.high - score.low > 0.03


def test_a_difference_agrees_with_the_sign_test_at_its_edge():
    assert share_difference(5, 0, 100).low < 0 < share_difference(7, 0, 100).low
