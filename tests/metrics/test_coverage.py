"""Intervals hold the true score as often as they say: in simulation, near 0 and 1 above all.

The full matrix runs in `make test-all`; one small case of each kind runs always.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from glassformer.metrics.calibration import bin_index
from glassformer.metrics.calibration_error import calibration_error
from glassformer.metrics.classification import f1_counts
from glassformer.metrics.paired import share_difference
from glassformer.metrics.ratios import rate_score, share_score
from glassformer.metrics.units import LEAST, Units

QUICK, FULL = 200, 1000
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "coverage.py"


def simulation():
    """The script that measures coverage by the number of units."""
    spec = importlib.util.spec_from_file_location("simulated_coverage", SCRIPT)
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


SIMULATED = simulation()
TABLE = {(row.score, row.unit): row for row in SIMULATED.ROWS_OF_TABLE}


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
        owner = np.repeat(np.arange(groups), sizes)
        right = rng.random(len(owner)) < chances[owner]
        return share_score(right, np.ones(len(owner)), units=Units("group", owner))

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
@pytest.mark.parametrize("groups", [8, 31, 101])
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


def published():
    """The lines of the table in the documentation, by score and unit."""
    text = SIMULATED.DOCS.read_text(encoding="utf-8")
    table = text.partition(SIMULATED.BEGIN)[2].partition(SIMULATED.END)[0].strip()
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {(line[0], line[1]): line[2:] for line in lines[2:]}


def test_intervals_are_shown_from_the_numbers_of_units_that_the_table_gives():
    lines = published()
    assert lines.keys() == TABLE.keys()
    needed = {}
    for key, (*cells, _alarms, from_) in lines.items():
        row, shares = TABLE[key], [round(float(cell) / 100, 3) for cell in cells]
        found = SIMULATED.least(row.kind, dict(zip(SIMULATED.COUNTS, shares, strict=True)))
        assert from_ == str(found), key
        side = row.kind, "groups" if row.grouped else "rows"
        needed[side] = max(needed.get(side, 0), found)
    for (kind, side), count in needed.items():
        assert getattr(LEAST[kind], side) == count, (kind, side)
    assert {kind for kind, _ in needed} == LEAST.keys()


def test_false_alarms_are_as_rare_as_they_should_be():
    assert all(float(line[-2]) <= 7.5 for line in published().values() if line[-2])


@pytest.mark.parametrize(
    ("score", "unit", "count"),
    [
        ("accuracy, exact match", "groups", 20),
        ("bits per byte, loss, perplexity", "rows", 5),
        ("RMSE", "groups", 10),
        ("difference of accuracy, exact match", "groups", 20),
    ],
)
def test_intervals_of_few_documents_groups_and_users_hold_the_truth(score, unit, count):
    held, alarms = SIMULATED.measured(TABLE[score, unit], count, trials=QUICK)
    assert 0.88 <= held <= 1
    assert alarms is None or alarms <= 0.1


@pytest.mark.full
@pytest.mark.parametrize("key", TABLE, ids=" by ".join)
def test_every_interval_that_is_shown_holds_the_truth(key):
    row = TABLE[key]
    fewest = LEAST[row.kind].groups if row.grouped else LEAST[row.kind].rows
    counts = [count for count in SIMULATED.COUNTS if count >= fewest]
    for count in (counts[0], counts[len(counts) // 2], counts[-1]):
        held, alarms = SIMULATED.measured(row, count, trials=500)
        assert held >= 0.895, count
        assert held <= 0.995 or row.kind in SIMULATED.WIDE, count
        assert alarms is None or alarms <= 0.085, count
