"""Baselines: the same as torch.nn's row by row, the same as their formulas, and leak-free."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from glassformer.config import STACK_NAMES, ConvolutionConfig, StackConfig
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import causal, window
from glassformer.errors import GlassformerError
from glassformer.models.baselines import (
    BASELINE_DECODERS,
    BASELINE_ENCODERS,
    TCN,
    ConvolutionalDecoder,
    RecurrentEncoder,
)

B, T, D = 3, 7, 26  # D is twice a prime: recurrent encoders read both ways
LENGTHS = (7, 3, 5)
CONFIG = StackConfig(
    kind="gru", dim=D, depth=2, dropout=0.0, convolution=ConvolutionConfig(width=3)
)
for_encoders = pytest.mark.parametrize("kind", BASELINE_ENCODERS)


def encoder_of(kind, **settings):
    return BASELINE_ENCODERS[kind](replace(CONFIG, kind=kind, **settings))


def influence(answers, tokens):
    """How much each token pushes the sum of the squares of these answers: one number a token."""
    (push,) = torch.autograd.grad(answers.square().sum(), tokens)
    return push.abs().sum(-1)


def spoilt(x, layout):
    """The same tokens, with numbers in the padding that would show anywhere."""
    return x.detach().masked_fill(~layout.real[..., None], torch.nan)


def test_every_kind_of_stack_but_attention_has_an_encoder_here():
    assert set(BASELINE_ENCODERS) == set(STACK_NAMES) - {"attention"}
    assert set(BASELINE_DECODERS) <= set(STACK_NAMES) - {"attention"}


# Encoders


@for_encoders
def test_packed_is_padded_and_both_are_one_by_one(kind):
    encoder, lengths = encoder_of(kind), (*LENGTHS, 0, 1)
    layout = Layout.padded(lengths, longest=T + 4)
    x, flat = torch.randn(len(lengths), T + 4, D), layout.as_packed()
    padded = encoder(x, layout=layout)
    packed = encoder(pack(x, flat), layout=flat)
    torch.testing.assert_close(packed, pack(padded, flat))
    alone = [encoder(x[[b], :n], layout=Layout.full(1, n))[0] for b, n in enumerate(lengths)]
    torch.testing.assert_close(packed, torch.cat(alone))
    assert padded.shape == x.shape


@for_encoders
def test_nothing_leaks_from_padding(kind):
    encoder, layout = encoder_of(kind), Layout.padded(LENGTHS, longest=T + 4)
    x = torch.randn(B, T + 4, D, requires_grad=True)
    answers = encoder(x, layout=layout)[layout.real]
    push = influence(answers, x)
    assert push[~layout.real].eq(0).all()
    assert push[layout.real].ne(0).all()
    again = encoder(spoilt(x, layout), layout=layout)[layout.real]
    torch.testing.assert_close(again, answers)
    again.sum().backward()
    assert all(weight.grad.isfinite().all() for weight in encoder.parameters())


@for_encoders
def test_nothing_leaks_from_a_neighbour_in_the_pack(kind):
    encoder, layout = encoder_of(kind), Layout.packed(LENGTHS, budget=17)
    x = torch.randn(17, D, requires_grad=True)
    for row in range(B):
        ours = layout.row_of == row
        push = influence(encoder(x, layout=layout)[ours], x)
        assert push[~ours].eq(0).all()
        assert push[ours].ne(0).all()


@for_encoders
def test_every_position_hears_of_every_other(kind):
    encoder, x = encoder_of(kind), torch.randn(1, T, D, requires_grad=True)
    for t in range(T):
        assert influence(encoder(x, layout=Layout.full(1, T))[:, t], x).ne(0).all()


@for_encoders
def test_a_batch_of_empty_rows_gives_empty_rows(kind):
    encoder = encoder_of(kind)
    assert encoder(torch.zeros(B, 0, D), layout=Layout.padded([0] * B)).shape == (B, 0, D)
    assert encoder(torch.zeros(0, D), layout=Layout.packed([0] * B)).shape == (0, D)


@for_encoders
def test_dropout_drops_in_training_only(kind):
    encoder, x = encoder_of(kind, dropout=0.5), torch.randn(B, T, D)
    one, two = (encoder(x, layout=Layout.full(B, T)) for _ in range(2))
    assert not torch.equal(one, two)
    encoder.eval()
    one, two = (encoder(x, layout=Layout.full(B, T)) for _ in range(2))
    assert torch.equal(one, two)


@pytest.mark.parametrize(("kind", "module"), [("gru", nn.GRU), ("lstm", nn.LSTM)])
@pytest.mark.parametrize("depth", [1, 3])
def test_recurrent_encoders_are_torchs_on_each_row_alone(kind, module, depth):
    ours = encoder_of(kind, depth=depth, dropout=0.1).eval()
    theirs = module(D, D // 2, depth, bidirectional=True)
    theirs.load_state_dict(ours.layers.state_dict())
    layout, x = Layout.padded((*LENGTHS, 0)), torch.randn(B + 1, T, D)
    answers = ours(x, layout=layout)
    for row, length in enumerate(LENGTHS):
        expected, _ = theirs(x[row, :length])
        torch.testing.assert_close(answers[row, :length], expected)
        assert answers[row, length:].eq(0).all()
    assert answers[B].eq(0).all()


@pytest.mark.usefixtures("half_on_cpu")
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_recurrent_layers_run_without_autocast_which_would_make_them_fp16_on_a_gpu(kind):
    encoder, x, seen = encoder_of(kind), torch.randn(B, T, D), []
    encoder.layers.register_forward_hook(lambda *_: seen.append(torch.is_autocast_enabled("cpu")))
    for layout in (Layout.full(B, T), Layout.padded(LENGTHS)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert encoder(x.bfloat16(), layout=layout).dtype == torch.float32
    assert seen == [False, False]


def test_recurrent_layers_drop_between_them():
    assert encoder_of("lstm", dropout=0.3).layers.dropout == 0.3


# Temporal convolutions


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize("sides", [(1, 1), (2, 0)], ids=["both sides", "causal"])
def test_a_tcn_is_residual_convolutions_of_doubling_dilation(order, sides):
    kind = ConvolutionalDecoder if sides[1] == 0 else TCN
    encoder = kind(replace(CONFIG, kind="tcn", order=order))

    def run(convolution, x, dilation):
        """One output after the other, each a sum over what stands `dilation` apart."""
        x = F.pad(x, (0, 0, sides[0] * dilation, sides[1] * dilation))
        steps = [
            sum(x[t + tap * dilation] @ convolution.weight[:, :, tap].T for tap in range(3))
            for t in range(T)
        ]
        return torch.stack(steps) + convolution.bias

    x = rows = torch.randn(T, D)
    for number, layer in enumerate(encoder.layers):
        inside = F.layer_norm(x, (D,)) if order == "pre" else x
        x = x + run(layer.second, run(layer.first, inside, 2**number).relu(), 2**number)
        x = F.layer_norm(x, (D,)) if order == "post" else x
    expected = F.layer_norm(x, (D,)) if order == "pre" else x
    answers = encoder(rows[None], layout=Layout.full(1, T))[0]
    torch.testing.assert_close(answers, expected, atol=1e-5, rtol=1e-5)


# Refusals


REFUSALS = {
    "mask of a gru": (
        lambda: encoder_of("gru")(torch.zeros(B, T, D), layout=Layout.full(B, T), mask=causal),
        "a recurrent encoder can only see everything, got the mask causal; leave out the mask",
    ),
    "mask of a tcn": (
        lambda: encoder_of("tcn")(torch.zeros(B, T, D), layout=Layout.full(B, T), mask=window(3)),
        r"a temporal convolutional network can only see everything, got the mask window\(3\)",
    ),
    "odd width": (
        lambda: encoder_of("lstm", dim=13),
        "reads in two directions, half of dim each: dim must be even, got 13; use 14",
    ),
    "another kind of encoder": (
        lambda: RecurrentEncoder(replace(CONFIG, kind="tcn")),
        "unknown kind of recurrent encoder 'tcn'; the choices are gru, lstm",
    ),
}


@pytest.mark.parametrize(("call", "words"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.usefixtures("without_shape_hook")
def test_bad_calls_are_refused_in_words(call, words):
    with pytest.raises((ValueError, GlassformerError), match=words):
        call()
