"""Intervals hold the true score as often as they say: in simulation, near 0 and 1 above all.

The full matrix runs in `make test-all`; one small case of each kind runs always.
"""

import numpy as np
import pytest

from glassformer.metrics.calibration import bin_index
from glassformer.metrics.calibration_error import calibration_error
from glassformer.metrics.classification import f1_counts
from glassformer.metrics.paired import share_difference
from glassformer.metrics.ratios import rate_score, share_score

QUICK, FULL = 200, 1000


def coverage(score, truth, trials):
    """How often the interval of a score holds the truth."""
    rng = np.random.default_rng(7)
    scores = [score(rng) for _ in range(trials)]
    return np.mean([one.low <= truth <= one.high for one in scores])


def of_share(rows, chance, trials):
    def score(rng):
        return share_score(rng.random(rows) < chance, np.ones(rows))

    return coverage(score, chance, trials)


def of_groups(groups, size, correlation, chance, trials):
    """Groups of different sizes, whose own chances differ as a beta distribution has it."""

    def score(rng):
        sizes, weight = rng.integers(1, 2 * size, groups), (1 - correlation) / correlation
        chances = rng.beta(chance * weight, (1 - chance) * weight, groups)
        return share_score(rng.binomial(sizes, chances), sizes)

    return coverage(score, chance, trials)


def of_macro_f1(classes, rows, wrong, trials):
    joint = np.full((classes, classes), wrong / (classes - 1) / classes)
    np.fill_diagonal(joint, (1 - wrong) / classes)
    truth = np.mean(2 * np.diag(joint) / (joint.sum(0) + joint.sum(1)))

    def score(rng):
        labels, answers = np.divmod(rng.choice(classes**2, rows, p=joint.ravel()), classes)
        hits, named = f1_counts(labels, answers, classes)
        return share_score(2 * hits, named)

    return coverage(score, truth, trials)


def of_error_rate(rows, rate, trials):
    """Edits come together: four rows in ten have none."""

    def score(rng):
        words = rng.integers(3, 20, rows)
        return rate_score(rng.poisson(words * rate / 0.6) * (rng.random(rows) < 0.6), words)

    return coverage(score, rate, trials)


def of_difference(rows, gained, lost, trials):
    def score(rng):
        wins, losses, _ = rng.multinomial(rows, [gained, lost, 1 - gained - lost])
        return share_difference(int(wins), int(losses), rows)

    return coverage(score, gained - lost, trials)


def evenly(rng, rows):
    return rng.uniform(0.5, 1, rows)


def surely(rng, rows):
    return rng.uniform(0.95, 1, rows)


CALIBRATIONS = {  # how sure answers are, and how often they are right then
    "calibrated": (evenly, lambda sure: sure),
    "sure and calibrated": (surely, lambda sure: sure),
    "sure and wrong": (surely, lambda sure: sure - 0.05),
    "always right": (surely, np.ones_like),
    "too sure": (evenly, lambda sure: sure - 0.1),
    "a little too sure": (evenly, lambda sure: sure - 0.03),
    "by turns": (evenly, lambda sure: sure + 0.2 * np.sin(20 * sure) * (1 - sure)),
}


def of_calibration_error(kind, rows, trials):
    confidence, accuracy = CALIBRATIONS[kind]
    sure = confidence(np.random.default_rng(0), 1_000_000)
    gaps = np.bincount(bin_index(sure), accuracy(sure) - sure)
    truth = np.abs(gaps).sum() / len(sure)

    def score(rng):
        sure = confidence(rng, rows)
        return calibration_error(sure[:, None], (rng.random(rows) < accuracy(sure))[:, None])

    return coverage(score, truth, trials)


def test_intervals_near_the_ends_hold_the_truth():
    assert of_share(30, 0.95, QUICK) > 0.9  # the bootstrap's hold it in 74 of 100
    assert of_groups(31, 5, 0.3, 0.95, QUICK) > 0.9
    assert of_macro_f1(7, 97, 0.02, QUICK) > 0.9
    assert of_error_rate(53, 0.005, QUICK) > 0.9
    assert of_difference(30, 0.05, 0.01, QUICK) > 0.9


@pytest.mark.parametrize("kind", ["calibrated", "sure and wrong"])
def test_intervals_of_calibration_errors_hold_the_truth(kind):
    assert of_calibration_error(kind, 211, QUICK) > 0.92


@pytest.mark.full
@pytest.mark.parametrize("rows", [11, 30, 53, 211, 997])
@pytest.mark.parametrize("chance", [0.5, 0.8, 0.95, 0.99])
def test_shares_are_covered(rows, chance):
    assert of_share(rows, chance, FULL) > 0.88
    assert of_share(rows, chance, FULL) < 0.99 or rows * (1 - chance) < 5


@pytest.mark.full
@pytest.mark.parametrize("groups", [5, 31, 101])
@pytest.mark.parametrize("size", [3, 19])
@pytest.mark.parametrize("correlation", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("chance", [0.5, 0.9, 0.98])
def test_shares_of_groups_are_covered(groups, size, correlation, chance):
    assert of_groups(groups, size, correlation, chance, FULL) > 0.89


@pytest.mark.full
@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("rows", [53, 211, 997])
@pytest.mark.parametrize("wrong", [0.02, 0.1, 0.4])
def test_macro_f1_is_covered(classes, rows, wrong):
    assert of_macro_f1(classes, rows, wrong, FULL) > 0.9


@pytest.mark.full
@pytest.mark.parametrize("rows", [19, 53, 211, 997])
@pytest.mark.parametrize("rate", [0.005, 0.05, 0.3, 1.1])
def test_error_rates_are_covered(rows, rate):
    assert of_error_rate(rows, rate, FULL) > 0.92


@pytest.mark.full
@pytest.mark.parametrize("rows", [30, 101, 997])
@pytest.mark.parametrize(("gained", "lost"), [(0.01, 0.01), (0.05, 0.01), (0.2, 0.1)])
def test_differences_are_covered(rows, gained, lost):
    assert of_difference(rows, gained, lost, FULL) > 0.92


@pytest.mark.full
@pytest.mark.parametrize("kind", CALIBRATIONS)
@pytest.mark.parametrize("rows", [30, 53, 211, 997, 5003])
def test_calibration_errors_are_covered(kind, rows):
    assert of_calibration_error(kind, rows, FULL) > 0.93
