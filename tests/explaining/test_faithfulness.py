"""Faithfulness: orders that are right by construction are told from random ones."""

import numpy as np
import pytest
import torch

from glassformer.core.layout import Layout
from glassformer.explaining.faithfulness import (
    CHANCE,
    SHARES,
    Faithfulness,
    MethodFaithfulness,
    curves_of,
    kept_pieces,
    measure,
)
from glassformer.explaining.methods import METHODS
from glassformer.explaining.parts import Target
from glassformer.explaining.subject import Subject

PIECES = 50


class Additive(Subject):
    """A model whose score is a sum of the weights of its pieces."""

    def __init__(self, seed):
        self.model = torch.nn.Identity()
        self.given = self.answer = "a text"
        self.pieces, self.targets = ("x ",) * PIECES, (Target(text="yes", probability=0.9),)
        self.piece_of = torch.arange(PIECES)[None]
        self.weights = torch.randn(PIECES, generator=torch.Generator().manual_seed(seed))

    def scores(self, model, *, copies=1, noise=None):
        x = self.weights.expand(copies, 1, -1)[..., None].reshape(copies, PIECES, 1)
        layout = Layout.full(copies, PIECES)
        return (x if noise is None else noise(x, layout)).sum((1, 2))[:, None]

    def scores_of(self, kept):
        return (kept * self.weights).sum(1, keepdim=True)

    def attention_of(self, maps):
        return ()


@pytest.fixture(scope="module")
def found():
    *counts, (rows, result) = measure(map(Additive, range(99)), rows=31)
    assert [count for count, _ in counts] == [*range(1, 32)]
    assert rows == result.rows == 31
    return result


def test_the_right_order_is_better_than_chance(found):
    for name in ("gradient_x_input", "integrated_gradients", "occlusion"):
        assert found.methods[name].low > 0.05
        assert found.verdict(name).startswith("better than chance by 0.")


def test_an_order_without_reason_is_no_better_than_chance(found):
    assert found.verdict("gradient_norm").startswith(("no better than chance", "worse than"))
    assert "is more faithful" in found.verdict("gradient_norm")


def test_few_inputs_give_no_interval_and_no_verdict(found):
    *_, (_, few) = measure(map(Additive, range(99)), rows=9)
    assert (few.methods["occlusion"].low, few.methods["occlusion"].high) == (None, None)
    why = "too few inputs for a verdict: 9, of at least 30"
    assert few.verdict("occlusion") == f"faithfulness not known: {why}"
    kept_before = Faithfulness(rows=9, methods=found.methods)
    assert kept_before.verdict("occlusion") == few.verdict("occlusion")


def test_methods_that_need_attention_are_left_out_without_any(found):
    assert {*found.methods} == {CHANCE} | {
        name for name, one in METHODS.items() if not one.attends and name != "ngrams"
    }
    assert found.verdict("rollout") == "faithfulness not measured"


def test_the_first_pieces_are_left_out_and_then_kept_alone():
    kept = kept_pieces(np.array([3, 1, 0, 2, 4]))
    assert len(kept) == 2 * len(SHARES)
    assert kept[0].tolist() == [True, True, True, False, True]
    assert kept[len(SHARES) - 1].tolist() == [True, False, True, False, True]
    assert (kept[: len(SHARES)] == ~kept[len(SHARES) :]).all()


def test_a_long_input_is_explained_by_the_best_method_that_takes_a_moment():
    def faithful(gain, low):
        return MethodFaithfulness(gain=gain, low=low, high=1.0, deletion=(), insertion=())

    long = Additive(0)
    long.piece_of = torch.arange(1000)[None] % PIECES
    methods = {"occlusion": faithful(0.9, 0.8), "gradient_x_input": faithful(0.5, 0.4)}
    assert Faithfulness(rows=9, methods=methods).choose(long) == "gradient_x_input"
    assert Faithfulness(rows=9, methods=methods).choose(Additive(0)) == "occlusion"
    methods["gradient_x_input"] = faithful(0.1, -0.1)
    assert Faithfulness(rows=9, methods=methods).choose(long) == "occlusion"


def test_rows_are_measured_until_time_is_up_but_never_fewer_than_a_few():
    *_, (rows, _) = measure(map(Additive, range(99)), rows=50, seconds=0.0)
    assert rows == 8


def test_curves_are_probabilities():
    curves = curves_of(Additive(1), np.random.default_rng(0), dict.fromkeys(METHODS, 0.0))
    assert all(((one >= 0) & (one <= 1)).all() for one in curves.values())
