"""Intervals: they hold the truth as often as they say, quickly, and are sane in the corners."""

import time

import numpy as np
import pytest

from glassformer.metrics.classification import classification_scores
from glassformer.metrics.intervals import Score, bootstrap, draw_counts, ratio

ROWS, CLASSES = 25_000, 23


def accuracy(right, **settings):
    return bootstrap(ratio, right, np.ones(len(right)), **settings)


def test_a_score_shows_its_interval():
    score = Score(0.9121, 0.9049, 0.9193)
    assert str(score) == "0.912 [0.905, 0.919]"
    assert score.as_values() == {"value": 0.9121, "low": 0.9049, "high": 0.9193}


def test_the_interval_is_as_wide_as_theory_says():
    right = np.arange(997) < 797
    score = accuracy(right, resamples=4000)
    deviation = np.sqrt(score.value * (1 - score.value) / len(right))
    assert score.value == 797 / 997
    assert score.low == pytest.approx(score.value - 1.96 * deviation, abs=0.003)
    assert score.high == pytest.approx(score.value + 1.96 * deviation, abs=0.003)


def test_ninety_five_intervals_in_a_hundred_hold_the_truth():
    random = np.random.default_rng(3)
    held = 0
    for trial in range(300):
        score = accuracy(random.random(211) < 0.7, resamples=300, seed=trial)
        held += score.low <= 0.7 <= score.high
    assert 0.90 <= held / 300 <= 0.99


def test_a_wider_level_gives_a_wider_interval():
    right = np.arange(101) < 61
    narrow, wide = accuracy(right, level=0.5), accuracy(right, level=0.99)
    assert wide.low < narrow.low <= narrow.value <= narrow.high < wide.high


def test_the_same_seed_gives_the_same_interval_and_another_another():
    right = np.random.default_rng(0).random(1009) < 0.5
    assert accuracy(right) == accuracy(right)
    assert accuracy(right) != accuracy(right, seed=1)


def test_a_single_row_has_an_interval_of_one_point():
    assert accuracy(np.array([1])) == Score(1.0, 1.0, 1.0)


def test_rows_that_are_all_the_same_have_an_interval_of_one_point():
    assert accuracy(np.zeros(31)) == Score(0.0, 0.0, 0.0)


def test_resamples_without_a_score_are_left_out():
    whole = np.array([0, 0, 0, 1])
    score = bootstrap(ratio, whole, whole)
    assert score == Score(1.0, 1.0, 1.0)


def test_no_score_at_all_is_no_number():
    score = bootstrap(ratio, np.zeros(3), np.zeros(3))
    assert np.isnan([score.value, score.low, score.high]).all()


def test_each_resample_draws_as_many_rows_as_there_are():
    random = np.random.default_rng(0)
    drawn = np.concatenate(list(draw_counts(17, 101, random)))
    assert drawn.shape == (101, 17)
    assert (drawn.sum(axis=1) == 17).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(17), abs=0.5)


@pytest.mark.usefixtures("without_shape_hook")
@pytest.mark.parametrize("lengths", [(3, 4), (0, 0)])
def test_arrays_that_do_not_fit_are_refused(lengths):
    with pytest.raises(ValueError, match="arrays of equal length, with at least one row"):
        bootstrap(ratio, *(np.ones(length) for length in lengths))


def test_a_whole_test_set_takes_well_under_two_seconds():
    random = np.random.default_rng(0)
    labels = random.integers(0, CLASSES, ROWS)
    probabilities = random.dirichlet(np.ones(CLASSES), ROWS)
    began = time.process_time()
    classification_scores(labels, probabilities)
    assert time.process_time() - began < 2
