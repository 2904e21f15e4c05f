"""Cross-entropy some tokens at a time: the same as at once, to every gradient."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.config import ModelConfig, StackConfig, build
from glassformer.core.layout import Layout
from glassformer.models import chunked_loss
from glassformer.models.build import build_language_model

V, LENGTHS = 53, (7, 11, 5)
N = sum(LENGTHS)
STACK = build(StackConfig, {"dim": 12, "depth": 1, "dropout": 0.0, "attention": {"heads": 3}})


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize(
    ("settings", "smoothing"),
    [({}, 0.0), ({"tie": False}, 0.1), ({"softcap": 0.7}, 0.1)],
    ids=["tied", "untied and smoothed", "capped and smoothed"],
)
def test_losses_some_at_a_time_are_those_of_all_scores(monkeypatch, rows, settings, smoothing):
    monkeypatch.setattr(chunked_loss, "CHUNK", rows * V + 1)
    model = build_language_model(ModelConfig(decoder=STACK, **settings), vocabulary=V)
    ids, labels, layout = torch.randint(V, (N,)), torch.randint(V, (N,)), Layout.packed(LENGTHS)
    labels[[2, 9]] = -100
    expected = F.cross_entropy(
        model(ids, layout=layout), labels, reduction="none", label_smoothing=smoothing
    )
    weights = torch.linspace(-1, 2, N)
    felt = gradients(model, expected @ weights)
    widest = []
    real = F.cross_entropy
    monkeypatch.setattr(
        F, "cross_entropy", lambda x, *a, **k: widest.append(len(x)) or real(x, *a, **k)
    )
    found = model(ids, layout=layout, labels=labels, smoothing=smoothing)
    torch.testing.assert_close(found, expected)
    assert found[[2, 9]].eq(0).all()
    for name, gradient in gradients(model, found @ weights).items():
        torch.testing.assert_close(gradient, felt[name])
    assert max(widest) == min(rows, N), "no more scores exist at a time, forward or backward"
    with torch.no_grad():
        still = model(ids, layout=layout, labels=labels, smoothing=smoothing)
    torch.testing.assert_close(still, expected)
