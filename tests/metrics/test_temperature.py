"""Temperature: found where it was planted, and never a step back."""

import numpy as np
import pytest

from glassformer.metrics.calibration import (
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    fit_temperature,
    log_loss,
    to_probabilities,
)

ROWS, CLASSES = 4001, 7


def drawn(logits, random):
    chances = to_probabilities(logits)
    return (chances.cumsum(axis=1) > random.random((len(logits), 1))).argmax(axis=1)


@pytest.mark.parametrize("planted", [0.5, 1.0, 3.0])
def test_a_planted_temperature_is_found(planted):
    random = np.random.default_rng(0)
    logits = random.normal(size=(ROWS, CLASSES)) * 2
    labels = drawn(logits, random)
    assert fit_temperature(logits * planted, labels) == pytest.approx(planted, rel=0.05)


@pytest.mark.parametrize("planted", [0.5, 1.0, 3.0])
def test_a_planted_temperature_of_several_labels_is_found(planted):
    random = np.random.default_rng(0)
    logits = random.normal(size=(ROWS, CLASSES)) * 2
    labels = random.random(logits.shape) < to_probabilities(logits, multi_label=True)
    assert fit_temperature(logits * planted, labels) == pytest.approx(planted, rel=0.05)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("many", [False, True])
def test_the_loss_never_rises_and_no_neighbour_is_better(seed, many):
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 50))
    logits = random.normal(size=(rows, 3)) * 10 ** random.uniform(-2, 2)
    labels = random.integers(0, 2, (rows, 3)) if many else random.integers(0, 3, rows)
    found = fit_temperature(logits, labels)
    loss = log_loss(logits, labels, found)
    assert MIN_TEMPERATURE * 0.999 <= found <= MAX_TEMPERATURE * 1.001
    assert loss <= log_loss(logits, labels)
    for other in (found * 1.05, found / 1.05):
        if MIN_TEMPERATURE <= other <= MAX_TEMPERATURE:
            assert loss <= log_loss(logits, labels, other) + 1e-9


def test_a_model_that_is_always_right_does_not_become_endlessly_sure():
    logits = np.eye(3)[[0, 1, 2, 0]] * 4
    assert fit_temperature(logits, np.array([0, 1, 2, 0])) == pytest.approx(
        MIN_TEMPERATURE, rel=1e-3
    )


def test_without_rows_the_logits_are_left_alone():
    assert fit_temperature(np.zeros((0, 3)), np.zeros(0, dtype=int)) == 1


def test_logits_that_say_nothing_have_a_temperature_all_the_same():
    assert np.isfinite(fit_temperature(np.zeros((5, 3)), np.zeros(5, dtype=int)))


def test_large_logits_do_not_overflow():
    logits = np.array([[1e4, -1e4], [-1e4, 1e4]], dtype=np.float32)
    labels = np.array([0, 0])
    assert fit_temperature(logits, labels) == pytest.approx(MAX_TEMPERATURE, rel=1e-3)
    assert to_probabilities(logits).sum(axis=1) == pytest.approx([1, 1])
    assert np.isfinite(to_probabilities(logits, multi_label=True)).all()


def test_logits_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="logits must be finite to fit a temperature"):
        fit_temperature(np.array([[np.nan, 0.0]]), np.array([0]))
