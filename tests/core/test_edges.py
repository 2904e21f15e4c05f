"""At the edges: batches without tokens, and padding that holds large numbers."""

import pytest
import torch

from glassformer.core.attention import MultiHeadAttention, attend, describe
from glassformer.core.feedforward import FEEDFORWARDS
from glassformer.core.kernels import KERNELS
from glassformer.core.layout import Layout, zero_padding
from glassformer.core.masks import causal, everything, window
from glassformer.core.positions import POSITIONS, make_position

D, H, K = 12, 3, 4
EMPTY = {
    "full": (Layout.full(2, 0), torch.zeros(2, 0, D)),
    "padded": (Layout.padded([0, 0]), torch.zeros(2, 0, D)),
    "packed": (Layout.packed([0, 0]), torch.zeros(0, D)),
}
each_empty_form = pytest.mark.parametrize(("layout", "x"), EMPTY.values(), ids=EMPTY)


@each_empty_form
@pytest.mark.parametrize("name", POSITIONS)
def test_no_tokens_attend_to_no_tokens_at_every_position(name, layout, x):
    layer, position = MultiHeadAttention(D, H), make_position(name, D, H, 7)
    assert position.embed(x, layout).shape == x.shape
    for kernel in ("auto", *KERNELS):
        layer.kernel = kernel
        with torch.no_grad():
            answer = layer(x, mask=causal, position=position, layout=layout)
        assert answer.shape == x.shape


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_memory_without_tokens_tells_nothing(kernel):
    layer, x = MultiHeadAttention(D, H), torch.randn(2, 5, D)
    layer.kernel = kernel
    with torch.no_grad():
        assert layer(x, torch.zeros(2, 0, D)).eq(0).all()


@each_empty_form
@pytest.mark.parametrize("name", FEEDFORWARDS)
def test_feed_forward_nets_take_no_tokens(name, layout, x):
    assert FEEDFORWARDS[name](D, 23)(x).shape == x.shape


# Padding


def test_zeros_stand_in_padding_alone():
    layout, x = Layout.padded([3, 0, 1]), torch.randn(3, 3, 2)
    expected = [[[step < n] * 2 for step in range(3)] for n in (3, 0, 1)]
    assert zero_padding(x, layout).ne(0).tolist() == expected
    by_head = zero_padding(x[:, None], layout, axis=2)
    assert by_head[:, 0].equal(zero_padding(x, layout))
    assert zero_padding(x, Layout.full(3, 3)) is x
    pack = torch.randn(7, 2)
    assert zero_padding(pack, Layout.packed([3, 1], budget=7)) is pack  # fillers are rows
    with pytest.raises(ValueError, match=r"^the batch holds \(3, 5\) tokens, but its layout desc"):
        zero_padding(torch.randn(3, 5, 2), layout)


@pytest.mark.parametrize("kernel", ["plain", "tiled", "fused", "packed"])
@pytest.mark.parametrize("name", ["none", "alibi", "transformer-xl", "rotary"])
@pytest.mark.parametrize("mask", [everything, causal, window(2)], ids=str)
def test_padding_of_large_numbers_changes_no_answer_and_no_gradient(kernel, name, mask):
    layout, position = Layout.padded([5, 2, 0]), make_position(name, D, H, 7)
    real = layout.real[:, None].expand(3, H, 5)
    clean = [zero_padding(torch.randn(3, H, 5, K), layout, axis=2) for _ in "qkv"]
    answers, gradients = [], []
    for size in (0.0, 1e20, 3e38):
        q, k, v = (x.masked_fill(~real[..., None], size).requires_grad_() for x in clean)
        q_at, k_at = position.turn(q, k, layout)
        bias = position.bias(q_at, layout, layout)
        call = describe(q_at, k_at, mask=mask, queries=layout, bias=bias, aligned=True)
        answers.append(attend(q_at, k_at, v, call, kernel=kernel)[real])
        learned = [q, k, v, *position.parameters()]
        push = answers[-1].square().sum()
        gradients.append(torch.autograd.grad(push, learned, materialize_grads=True))
    for answer, gradient in zip(answers[1:], gradients[1:], strict=True):
        torch.testing.assert_close(answer, answers[0])
        for ours, theirs in zip(gradient, gradients[0], strict=True):
            torch.testing.assert_close(ours, theirs)
