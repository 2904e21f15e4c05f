"""Scores of recommendations against their definitions, with intervals by user."""

import numpy as np
import pytest

from glassformer.metrics.ranking import (
    coverage,
    discounted_gains,
    hits,
    mean_by_user,
    root_mean_square,
)


def test_gains_are_those_of_ndcg_with_one_right_item():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    scores, right = rng.normal(size=(7, 23)), rng.integers(0, 23, 7)
    ranks = 1.0 + (scores > scores[np.arange(7), right][:, None]).sum(1)
    truth = np.eye(23)[right]
    assert discounted_gains(ranks).mean() == pytest.approx(metrics.ndcg_score(truth, scores, k=10))
    assert hits(ranks).mean() == metrics.top_k_accuracy_score(
        right, scores, k=10, labels=np.arange(23)
    )


def test_coverage_counts_each_item_once_and_no_gaps():
    assert coverage(np.array([[1, 2], [2, -1]]), 5) == 0.4


def test_the_error_is_that_of_all_rows_and_its_interval_goes_by_user():
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(40), 10)
    errors = rng.normal(size=400) + np.repeat(3 * rng.normal(size=40), 10)
    found = root_mean_square(errors, users).score()
    assert found.value == pytest.approx(np.sqrt(np.mean(errors**2)))
    alone = root_mean_square(errors, np.arange(400)).score()
    assert found.high - found.low > 1.5 * (alone.high - alone.low)
    assert not root_mean_square(errors, users).higher_is_better


def test_the_mean_of_users_with_more_rows_counts_more():
    found = mean_by_user(np.array([1, 0, 0, 0]), np.array([5, 7, 7, 7]))
    assert found.score().value == 0.25
    assert found.rows.tolist() == [[1, 1], [0, 3]]
    assert found.gains_over(found).tolist() == [0, 0]
