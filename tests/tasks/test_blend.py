"""The weights of the model and of the n-grams: the best ones, judged on rows that gave none."""

import numpy as np
import pytest
from scipy.optimize import minimize

from glassformer.errors import GlassformerError
from glassformer.metrics.calibration import fit_temperature, log_loss
from glassformer.tasks.classify.blend import (
    FEW,
    FOLDS,
    RECORD,
    Blend,
    System,
    cross_fitted,
    fit_weights,
    penalised,
    worse_than,
)

ROWS, CLASSES = 211, 3


def parts(multi, noise=(1.0, 0.7), rows=ROWS):
    """Logits of two systems that know the labels, each with noise of its own, and the labels."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2 if multi else CLASSES, (rows, CLASSES) if multi else rows)
    truth = 2.0 * labels - 1 if multi else np.eye(CLASSES)[labels]
    return [truth + level * random.normal(size=truth.shape) for level in noise], labels


@pytest.mark.parametrize("multi", [False, True])
def test_the_weights_have_the_least_loss(multi):
    given, labels = parts(multi)
    best = minimize(penalised, np.full(2, 0.5), (given, labels), method="Nelder-Mead", tol=1e-9)
    assert fit_weights(given, labels) == pytest.approx(best.x, abs=1e-4)
    assert fit_weights(given, labels)[1] > fit_weights(given, labels)[0] > 0


@pytest.mark.parametrize("multi", [False, True])
def test_a_part_that_is_wrong_throughout_has_no_weight(multi):
    (first, second), labels = parts(multi)
    one, other = fit_weights([first, -second], labels)
    assert one > 0.5
    assert other == 0


def test_without_rows_both_weigh_the_same():
    assert fit_weights([np.zeros((0, 2))] * 2, np.zeros(0, dtype=int)).tolist() == [0.5, 0.5]


def test_rows_that_are_all_right_do_not_call_for_endless_weights():
    logits = np.array([[3.0, 0.0], [0.0, 3.0]])
    assert (fit_weights([logits, logits], np.array([0, 1])) < 3).all()


def test_a_row_is_judged_by_weights_that_it_did_not_give():
    given, labels = parts(multi=False)
    fold = np.arange(ROWS) % FOLDS == 3
    others = np.where(fold, (labels + 1) % CLASSES, labels)
    first, second = cross_fitted(given, labels), cross_fitted(given, others)
    assert (first[fold] == second[fold]).all()
    assert (first[~fold] != second[~fold]).any()


def test_the_network_stays_unless_it_makes_n_grams_clearly_worse():
    both, labels = parts(False, (12.0, 0.6))  # it knows next to nothing
    network, ngrams = (part / fit_temperature(part, labels) for part in both)
    assert log_loss(cross_fitted((network, ngrams), labels), labels) > log_loss(ngrams, labels)
    assert Blend.fit(network, ngrams, labels, always=False).sentence.endswith("from both.")
    assert worse_than(ngrams + 9 * network, ngrams, labels)
    assert not worse_than(ngrams, ngrams, labels)


@pytest.mark.parametrize(
    ("rows", "noise", "always", "outcome"),
    [
        (ROWS, (1.0, 0.7), False, "both"),
        (ROWS, (0.6, 90.0), False, "the network alone"),
        (ROWS, (90.0, 0.6), False, "n-grams alone"),
        (ROWS, (0.6, 90.0), True, "both"),
        (7, (1.0, 0.7), False, "n-grams alone"),
        (7, (0.6, 90.0), False, "n-grams alone"),  # so few rows cannot tell
        (7, (1.0, 0.7), True, "both"),
    ],
)
def test_a_part_that_does_not_help_takes_no_part(rows, noise, always, outcome):
    parts_and_labels, labels = parts(False, noise, rows)
    model, ngrams = (part / fit_temperature(part, labels) for part in parts_and_labels)
    found = Blend.fit(model, ngrams, labels, always=always)
    assert found.kept == (outcome != "the network alone")
    assert found.sentence.endswith(f"Predictions come from {outcome}.")
    told = "Fewer than 10 rows cannot decide between them; a linear model learns more"
    assert (told in found.sentence) == (rows < FEW and not always)
    if outcome == "n-grams alone":
        assert (found.mixed(model, ngrams) == ngrams).all()


def test_what_is_better_in_the_reported_score_is_chosen_whatever_the_log_loss():
    """N-grams that are right, but far too timid to have a low log loss at 0.5."""
    (network, ngrams), labels = parts(True, (1.3, 0.2), rows=400)
    timid = ngrams - 2.5
    assert log_loss(timid, labels) > log_loss(network, labels)
    found = Blend.fit(network, timid, labels, always=False)
    assert found.sentence.endswith("from n-grams alone.")
    assert found.threshold < 0.3 < found.network_threshold
    fixed = Blend.fit(network, timid, labels, always=False, threshold=0.4)
    assert fixed.threshold == fixed.network_threshold == 0.4


def test_a_difference_within_chance_is_left_to_the_log_loss():
    (network, ngrams), labels = parts(False, (1.0, 1.0))
    one, other = (System.of(part, labels, None) for part in (network, ngrams))
    assert abs(one.scores[0] - other.scores[0]) < 0.03
    for tie in (True, False):
        assert one.beats(other, tie=tie) is other.beats(one, tie=tie) is tie
    wrong = System.of(-network, labels, None)
    assert one.beats(wrong, tie=False)
    assert not wrong.beats(one, tie=True)


def test_it_is_kept_as_json_and_refused_if_damaged(tmp_path):
    assert Blend.load(tmp_path) is None
    (model, ngrams), labels = parts(multi=False)
    found = Blend.fit(model, ngrams, labels, always=False)
    found.save(tmp_path)
    assert Blend.load(tmp_path) == found
    (tmp_path / RECORD).write_text('{"model": "half"}')
    with pytest.raises(GlassformerError, match=r"ngrams\.json: not the n-gram part.*copy the run"):
        Blend.load(tmp_path)
