"""Means over seeds: Student's t, intervals that hold what they promise, ties, Holm's correction."""

import numpy as np
import pytest
from scipy import stats

from glassformer.metrics.intervals import Estimate, Score, deviations, tail
from glassformer.metrics.paired import Comparison, paired_test
from glassformer.metrics.seeds import (
    adjusted,
    correlation_of,
    over_seeds,
    paired_over_seeds,
)


@pytest.mark.parametrize("freedom", [1.0, 2.0, 2.7, 13.0, 1000.0])
def test_students_t_is_that_of_scipy(freedom):
    for deviation in (0.0, 0.3, 2.0, 7.0):
        expected = 2 * stats.t.sf(deviation, freedom)
        assert tail(deviation, freedom) == pytest.approx(expected, rel=1e-6)
    expected = stats.t.ppf(0.975, freedom)
    assert deviations(0.95, freedom) == pytest.approx(expected, rel=1e-6)


def test_one_seed_keeps_the_interval_over_rows():
    found = over_seeds([Score(0.7, 0.6, 0.8)]).score()
    assert (found.value, found.low, found.high) == pytest.approx((0.7, 0.6, 0.8), abs=1e-3)


def test_seeds_that_differ_widen_the_interval():
    same = over_seeds([Score(0.7, 0.6, 0.8)] * 3).score()
    differ = over_seeds([Score(v, v - 0.1, v + 0.1) for v in (0.6, 0.7, 0.8)]).score()
    assert differ.high - differ.low > 1.3 * (same.high - same.low)


def drawn(rng, seeds, rows, *, of_seed, of_row, rest):
    """Differences of two systems on rows by seed: each has its luck, each row its own."""
    luck = of_seed * rng.standard_normal((seeds, 1)) + of_row * rng.standard_normal((1, rows))
    return luck + rest * rng.standard_normal((seeds, rows))


def compared(gains):
    value, error = gains.mean(), gains.std(ddof=1) / np.sqrt(len(gains))
    score = Score(value, value - 1.96 * error, value + 1.96 * error)
    return Comparison(score, 0.5, 0, 0, len(gains), gains)


@pytest.mark.parametrize(
    "spread",
    [
        {"of_seed": 0.1, "of_row": 0.0, "rest": 1.0},
        {"of_seed": 0.0, "of_row": 1.0, "rest": 0.3},
        {"of_seed": 0.05, "of_row": 0.5, "rest": 0.5},
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(spread):
    rng, held = np.random.default_rng(3), 0
    for _ in range(300):
        found = paired_over_seeds([compared(row) for row in drawn(rng, 3, 31, **spread)])
        held += found.p_value() > 0.05
    assert 0.92 <= held / 300 <= 0.997
    score = found.score()
    assert (score.low <= 0 <= score.high) == (found.p_value() > 0.05)


def test_more_seeds_tell_smaller_differences_apart_where_rows_do_not_agree():
    rng = np.random.default_rng(5)
    widths = []
    for seeds in (3, 27):
        gains = drawn(rng, seeds, 101, of_seed=0.0, of_row=0.0, rest=1.0)
        widths.append(np.sqrt(paired_over_seeds([compared(one) for one in gains]).variance))
    assert widths[1] < 0.6 * widths[0]


def test_rows_that_are_not_known_are_taken_to_agree():
    gains = np.array([1, 0, -1, 0])
    assert correlation_of([]) == correlation_of([gains]) == 1.0
    assert correlation_of([gains, np.zeros(4)]) == 1.0
    assert correlation_of([gains, -gains]) == 0.0


def test_a_paired_test_tells_the_gain_of_each_row():
    first, second = np.array([True, True, False]), np.array([True, False, True])
    found = paired_test(first, second)
    assert found.gains.tolist() == [0, 1, -1]
    assert "gains" not in found.as_values()


def test_equal_systems_are_a_tie_and_certain_differences_are_not():
    assert Estimate(0.0, 0.0, 2.0).p_value() == 1.0
    assert Estimate(0.1, 0.0, 2.0).p_value() == 0.0


def test_independent_means_add_their_variances():
    found = Estimate(0.5, 0.03, 2.0).minus(Estimate(0.3, 0.01, 2.0))
    assert (found.value, found.variance) == pytest.approx((0.2, 0.04))
    assert found.freedom == pytest.approx(0.04**2 / (0.03**2 / 2 + 0.01**2 / 2))


def test_holms_correction_keeps_the_order():
    assert adjusted([0.04, 0.001, 0.03, 0.9]) == pytest.approx([0.09, 0.004, 0.09, 0.9])
    assert adjusted([]) == []
