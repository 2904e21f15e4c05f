"""Losses over a vocabulary: some tokens at a time or by a kernel, the same to every gradient."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.config import ModelConfig, StackConfig, build
from glassformer.core.layout import Layout
from glassformer.models.build import build_language_model
from glassformer.models.losses import chunked, cross_entropy, divergence, summed_cross_entropy

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
    monkeypatch.setitem(chunked.CHUNK, "cpu", rows * V + 1)
    model = build_language_model(ModelConfig(decoder=STACK, **settings), vocabulary=V)
    ids, labels, layout = torch.randint(V, (N,)), torch.randint(V, (N,)), Layout.packed(LENGTHS)
    labels[[2, 9]] = -100
    scores = model(ids, layout=layout)
    expected = F.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing)
    felt = gradients(model, 0.3 * expected)
    widest, real = [], chunked.losses_and_gradients
    monkeypatch.setattr(
        chunked, "losses_and_gradients", lambda x, *a: widest.append(len(x)) or real(x, *a)
    )
    found = model(ids, layout=layout, labels=labels, smoothing=smoothing)
    torch.testing.assert_close(found, expected)
    for name, gradient in gradients(model, 0.3 * found).items():
        torch.testing.assert_close(gradient, felt[name])
    assert max(widest) <= rows, "no more scores exist at a time"


def test_losses_without_gradients_are_those_of_each_token(monkeypatch):
    monkeypatch.setitem(chunked.CHUNK, "cpu", 4 * V)
    model = build_language_model(ModelConfig(decoder=STACK), vocabulary=V)
    ids, labels, layout = torch.randint(V, (N,)), torch.randint(V, (N,)), Layout.packed(LENGTHS)
    labels[[2, 9]] = -100
    with torch.no_grad():
        found = model(ids, layout=layout, labels=labels)
        expected = F.cross_entropy(model(ids, layout=layout), labels, reduction="none")
    torch.testing.assert_close(found, expected)
    assert found[[2, 9]].eq(0).all()


@pytest.mark.cuda
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", [65, 50_304])
def test_the_gpu_kernel_gives_what_plain_pytorch_does(vocabulary, smoothing):
    x = torch.randn(37, 64, device="cuda", requires_grad=True)
    weight = torch.randn(vocabulary, 64, device="cuda", requires_grad=True)
    labels = torch.randint(vocabulary, (37,), device="cuda")
    labels[[2, 9]] = -100
    expected = F.cross_entropy(x @ weight.T, labels, reduction="sum", label_smoothing=smoothing)
    found = summed_cross_entropy(x, weight, labels, smoothing=smoothing)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
    for ours, theirs in zip(
        *(torch.autograd.grad(loss, (x, weight)) for loss in (found, expected)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


@pytest.mark.cuda
@pytest.mark.parametrize("vocabulary", [65, 8000])
def test_gpu_kernels_of_given_scores_give_what_plain_pytorch_does(vocabulary):
    a, b = (
        torch.randn(2 * 37, vocabulary, device="cuda", requires_grad=True).chunk(2) for _ in "ab"
    )
    labels = torch.randint(vocabulary, (37,), device="cuda")
    labels[[2, 9]] = -100
    for ours, theirs in [
        (cross_entropy(a[0], labels, smoothing=0.1), plain_cross_entropy(a[0], labels)),
        (divergence(a[0], b[0], labels), plain_divergence(a[0], b[0], labels)),
    ]:
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)
        both = (
            torch.autograd.grad(2.5 * x, (a[0], b[0]), allow_unused=True) for x in (ours, theirs)
        )
        for found, expected in zip(*both, strict=True):
            assert (found is None) == (expected is None)
            if expected is not None:
                torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.cuda
def test_a_loss_on_a_gpu_refuses_a_second_backward_pass():
    scores = torch.randn(5, V, device="cuda", requires_grad=True)
    loss = cross_entropy(scores, torch.arange(5, device="cuda"))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="one backward"):
        loss.backward()


def plain_cross_entropy(scores, labels):
    return F.cross_entropy(scores, labels, reduction="sum", label_smoothing=0.1)


def plain_divergence(a, b, labels):
    log_a, log_b = a.log_softmax(-1), b.log_softmax(-1)
    return F.kl_div(log_b, log_a, reduction="none", log_target=True)[labels >= 0].sum()
