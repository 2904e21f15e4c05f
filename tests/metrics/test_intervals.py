"""Intervals: they hold the truth as often as they say, quickly, and are sane in the corners."""

import time

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from glassformer.metrics.classification import classification_scores
from glassformer.metrics.intervals import BLOCKS, Score, freedom_of, jackknife, ratio
from glassformer.metrics.units import LEAST, Units, pooled

ROWS, CLASSES = 25_000, 23


def accuracy(right, level=0.95):
    return jackknife(ratio, right, np.ones(len(right))).score(level)


def test_a_score_shows_its_interval():
    score = Score(0.9121, 0.9049, 0.9193)
    assert str(score) == "0.912 [0.905, 0.919]"
    assert score.as_values() == {"value": 0.9121, "low": 0.9049, "high": 0.9193}


def test_a_score_without_an_interval_says_why_in_words_and_in_json():
    score = Score.without_interval(1.8124, "one document: no interval")
    assert str(score) == "1.812 (one document: no interval)"
    assert score.interval is None
    ends = {"low": None, "high": None, "interval": None}
    assert score.as_values() == {"value": 1.8124, **ends, "reason": score.reason}


@pytest.mark.parametrize("rows", [997, 8009])  # more than BLOCKS are put into blocks
def test_the_interval_is_as_wide_as_theory_says(rows):
    right = np.random.default_rng(0).permutation(np.arange(rows) < 0.8 * rows)
    score = accuracy(right)
    deviation = np.sqrt(score.value * (1 - score.value) / len(right))
    assert score.value == right.mean()
    assert score.low == pytest.approx(score.value - 1.96 * deviation, rel=0.005)
    assert score.high == pytest.approx(score.value + 1.96 * deviation, rel=0.005)
    assert rows > BLOCKS or rows == 997


def test_of_few_rows_it_is_that_of_student():
    values = np.array([1.0, 2.0, 4.0])
    found = jackknife(ratio, values, np.ones(3)).score()
    spread = ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((spread.low, spread.high), rel=1e-3)


def test_one_unit_that_is_as_large_as_all_others_leaves_few_degrees_of_freedom():
    assert freedom_of(np.ones(11)) == pytest.approx(10)
    assert freedom_of(np.array([10.0, *np.ones(10)])) == pytest.approx(400 / 110 - 1)
    size = np.array([100.0, 1.0, 1.0, 1.0])
    bits = size * np.array([1.0, 2.0, 2.0, 2.0])
    equal = jackknife(ratio, bits, size).score()
    weighed = jackknife(ratio, bits, size, weights=size).score()
    assert weighed.high - weighed.low > equal.high - equal.low


def test_a_wider_level_gives_a_wider_interval():
    right = np.arange(101) < 61
    narrow, wide = accuracy(right, level=0.5), accuracy(right, level=0.99)
    assert wide.low < narrow.low <= narrow.value <= narrow.high < wide.high


def test_a_single_row_has_no_interval():
    assert accuracy(np.array([1])).interval is None


def test_rows_that_are_all_the_same_have_an_interval_of_one_point():
    assert accuracy(np.zeros(31)) == Score(0.0, 0.0, 0.0)


def test_a_score_that_depends_on_a_single_row_has_no_interval():
    whole = np.array([0, 0, 0, 1])
    score = jackknife(ratio, whole, whole).score()
    assert score.value == 1
    assert "all depends on a single row" in score.reason


def test_no_score_at_all_is_no_number():
    score = jackknife(ratio, np.zeros(3), np.zeros(3)).score()
    assert np.isnan([score.value, score.low, score.high]).all()


def test_rows_of_a_group_are_one_unit():
    units = Units("film", np.array([7, 3, 7, 7]))
    assert units.sums(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [2.0, 8.0]
    assert units.sizes(4).tolist() == [1.0, 3.0]
    assert units.count(4) == 2
    assert units.described(4) == "4 rows of 2 films"
    both = pooled([units, Units("film", np.array([9]))])
    assert both.groups.tolist() == [7, 3, 7, 7, 9]
    assert pooled([units, Units()]).groups is None


@pytest.mark.parametrize("kind", LEAST)
def test_too_few_units_have_no_interval_and_say_how_many_are_needed(kind):
    for units, least in ((Units(), LEAST[kind].rows), (Units(alike=True), LEAST[kind].groups)):
        assert units.objection(kind, least) == ""
        few = units.objection(kind, least - 1)
        assert few == f"too few rows for an interval: {least - 1}, of at least {least}"
        assert units.objection(kind, 1) == "one row: no interval"
        found = units.judged(kind, Score(0.5, 0.4, 0.6), least - 1)
        assert (found.value, found.interval, found.reason) == (0.5, None, few)


@pytest.mark.usefixtures("without_shape_hook")
@pytest.mark.parametrize("lengths", [(3, 4), (0, 0)])
def test_arrays_that_do_not_fit_are_refused(lengths):
    with pytest.raises(ValueError, match="arrays of equal length, with at least one row"):
        jackknife(ratio, *(np.ones(length) for length in lengths))


def test_a_whole_test_set_takes_well_under_two_seconds():
    random = np.random.default_rng(0)
    labels = random.integers(0, CLASSES, ROWS)
    probabilities = random.dirichlet(np.ones(CLASSES), ROWS)
    began = time.process_time()
    classification_scores(labels, probabilities)
    assert time.process_time() - began < 2
