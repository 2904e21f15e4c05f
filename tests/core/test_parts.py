"""Norms, feed-forward nets, dropping out and the road past a sublayer."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.dropout import Dropout, StochasticDepth, dropout
from glassformer.core.feedforward import FEEDFORWARDS
from glassformer.core.layout import Layout, pack
from glassformer.core.norms import NORMS, BatchNorm, LayerNorm, RMSNorm
from glassformer.core.residual import ORDERS, Residual
from glassformer.core.scoring import Scoring

D, HIDDEN, B, T = 7, 23, 3, 5
LENGTHS = (5, 2, 0)


# Norms


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LayerNorm, nn.LayerNorm),
        (partial(LayerNorm, bias=False), partial(nn.LayerNorm, bias=False)),
        (RMSNorm, nn.RMSNorm),
    ],
)
def test_norms_of_one_vector_equal_torch(ours, theirs):
    ours, theirs = ours(D, eps=0.1), theirs(D, eps=0.1)
    for weight in ours.parameters():
        nn.init.normal_(weight)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(B, T, D)
    torch.testing.assert_close(ours(x), theirs(x))


def test_batch_norm_sees_only_real_tokens_and_equals_torch_on_them():
    ours, theirs = BatchNorm(D), nn.BatchNorm1d(D)
    layout, flat = Layout.padded(LENGTHS), Layout.packed(LENGTHS, budget=11)
    for step in range(3):
        x = torch.randn(B, T, D, generator=torch.Generator().manual_seed(step)) * 3 + 1
        tokens = pack(x, layout.as_packed())
        expected = theirs(tokens)
        torch.testing.assert_close(pack(ours(x, layout), layout.as_packed()), expected)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_variance, theirs.running_var)
    filled = torch.cat([tokens, torch.full((4, D), 1e6)])
    torch.testing.assert_close(BatchNorm(D)(filled, flat)[:7], nn.BatchNorm1d(D)(tokens))
    answer, expected = ours.eval()(x, layout), theirs.eval()(x.mT).mT
    torch.testing.assert_close(answer[layout.real], expected[layout.real])


def test_padding_of_large_numbers_leaves_batch_norm_and_its_gradients_finite():
    norm, layout = BatchNorm(D), Layout.padded(LENGTHS)
    x = torch.randn(B, T, D)
    expected = norm(x, layout)[layout.real]
    x[~layout.real] = 1e20
    x.requires_grad_()
    answer = norm(x, layout)
    torch.testing.assert_close(answer[layout.real], expected)
    answer[layout.real].square().sum().backward()
    for tensor in (answer, x.grad, *(weight.grad for weight in norm.parameters())):
        assert tensor.isfinite().all()


def test_a_batch_without_tokens_changes_no_averages():
    norm = BatchNorm(D)
    norm(torch.randn(B, T, D), Layout.full(B, T))
    before = [tensor.clone() for tensor in norm.buffers()]
    assert norm(torch.zeros(B, 0, D), Layout.padded([0] * B)).shape == (B, 0, D)
    for old, new in zip(before, norm.buffers(), strict=True):
        assert old.equal(new)


def test_batch_norm_without_a_bias_adds_none():
    x, layout = torch.randn(B, T, D), Layout.full(B, T)
    ours, theirs = BatchNorm(D, eps=0.1, bias=False), nn.BatchNorm1d(D, eps=0.1, affine=False)
    assert dict(ours.named_parameters()).keys() == {"weight"}
    torch.testing.assert_close(ours(x, layout), theirs(x.mT).mT)


@pytest.mark.usefixtures("half_on_cpu")
@pytest.mark.parametrize("name", NORMS)
def test_norms_keep_the_type_they_are_given(name):
    x = torch.randn(B, T, D).bfloat16()
    assert NORMS[name](D).bfloat16()(x, Layout.full(B, T)).dtype == torch.bfloat16


@pytest.fixture
def every_warning():
    """Those that torch gives once, again."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("every_warning", "half_on_cpu")
def test_a_norm_of_full_weights_takes_the_fused_kernel_for_short_numbers():
    """Torch warns where it cannot."""
    assert RMSNorm(D)(torch.randn(B, T, D).bfloat16()).dtype == torch.bfloat16
    layer = MultiHeadAttention(D, 1, scoring=Scoring(qk_norm=True))
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.randn(B, T, D)).dtype == torch.bfloat16


def test_queries_and_keys_are_normalised_as_by_torch():
    layer, theirs = MultiHeadAttention(D, 1, scoring=Scoring(qk_norm=True)), nn.RMSNorm(D)
    x = 1e-4 * torch.randn(B, T, D)  # so small that the epsilon shows
    expected = theirs(layer.to_q(x))
    assert layer.queries(x)[:, 0].equal(expected)


# Feed-forward


def test_feed_forward_nets_equal_their_formulas():
    x = torch.randn(B, T, D)
    activations = {
        "relu": F.relu,
        "relu2": lambda h: F.relu(h) ** 2,
        "gelu": F.gelu,
        "silu": F.silu,
        "gelu-tanh": lambda h: F.gelu(h, approximate="tanh"),
        "convolution": F.relu,
        "swiglu": F.silu,
        "geglu": F.gelu,
        "geglu-tanh": lambda h: F.gelu(h, approximate="tanh"),
    }
    for name, make in FEEDFORWARDS.items():
        net = make(D, HIDDEN)
        w = {key: value.squeeze(-1) for key, value in net.state_dict().items()}
        hidden = x @ w["widen.weight"].T + w["widen.bias"]
        if "gate.weight" in w:
            hidden = activations[name](x @ w["gate.weight"].T + w["gate.bias"]) * hidden
        else:
            hidden = activations[name](hidden)
        torch.testing.assert_close(net(x), hidden @ w["narrow.weight"].T + w["narrow.bias"])


@pytest.mark.parametrize("name", FEEDFORWARDS)
def test_each_position_thinks_alone(name):
    net, x = FEEDFORWARDS[name](D, HIDDEN), torch.randn(B, T, D, requires_grad=True)
    (push,) = torch.autograd.grad(net(x)[1, 2].sum(), x)
    assert push[1, 2].ne(0).any()
    push[1, 2] = 0
    assert push.eq(0).all()
    flat = Layout.full(B, T).as_packed()
    torch.testing.assert_close(net(pack(x, flat)), pack(net(x), flat))


# Dropping out


@pytest.mark.parametrize("share", [0.002, 0.1, 0.5, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(share):
    kept = dropout(torch.ones(1_000_003), share)
    values = kept.unique()
    assert len(values) == 2
    assert values[0] == 0
    assert kept.eq(0).float().mean().item() == pytest.approx(share, abs=0.004)
    assert kept.mean().item() == pytest.approx(1, abs=0.02)


def test_dropout_drops_nothing_out_of_training_and_differs_each_time_in_it():
    drop, x = Dropout(0.5), torch.randn(B, T, D)
    assert not torch.equal(drop(x), drop(x))
    assert torch.equal(drop.eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_dropout_is_repeatable_and_its_gradient_is_what_it_let_through():
    x = torch.randn(B, T, D, requires_grad=True)
    torch.manual_seed(3)
    y = dropout(x, 0.5)
    torch.manual_seed(3)
    assert torch.equal(dropout(x, 0.5), y)
    (push,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(push * x, y)


def test_stochastic_depth_leaves_out_whole_rows_in_either_form():
    skip, flat = StochasticDepth(0.5), Layout.packed([2, 3, 5, 7, 11, 13])
    seen = set()
    for _ in range(20):
        kept = skip(torch.ones(flat.tokens, D), flat)
        for row in range(flat.rows):
            values = kept[flat.row_of == row].unique()
            assert len(values) == 1
            seen.add(values.item())
    assert seen == {0.0, 2.0}
    rows = skip(torch.ones(97, T, D), Layout.full(97, T))
    assert rows.flatten(1).unique(dim=1).shape[1] == 1
    assert rows.unique().tolist() == [0.0, 2.0]  # each row has luck of its own
    assert torch.equal(skip.eval()(rows, Layout.full(97, T)), rows)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(ValueError, match=rf"dropout must be in \[0, 1\), got {share}"):
        Dropout(share)


# The road past a sublayer


def test_each_order_is_its_formula():
    x, layout = torch.randn(B, T, D), Layout.full(B, T)

    def twist(x):
        return x.flip(-1).sin()

    def norm(x):
        return F.layer_norm(x, (D,))

    expected = {
        "pre": x + 0.5 * twist(norm(x)),
        "post": norm(x + 0.5 * twist(x)),
        "sandwich": x + 0.5 * norm(twist(norm(x))),
    }
    assert set(expected) == set(ORDERS)
    for order, answer in expected.items():
        torch.testing.assert_close(Residual(D, order=order, weight=0.5)(x, twist, layout), answer)


def test_unknown_orders_are_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"unknown order 'past'; did you mean 'post'\?"):
        Residual(D, order="past")
