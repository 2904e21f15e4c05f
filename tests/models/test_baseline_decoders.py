"""Decoders of the baselines: step by step, in pieces, and what may reach what."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from glassformer.config import AttentionConfig, ConvolutionConfig, StackConfig
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import everything
from glassformer.models.baselines import BASELINE_DECODERS, BASELINE_ENCODERS

B, T, S, D, E = 3, 7, 11, 14, 5
LENGTHS, SOURCE = (7, 3, 5), (2, 11, 5)
CONFIG = StackConfig(
    dim=D,
    depth=2,
    dropout=0.0,
    convolution=ConvolutionConfig(width=3),
    attention=AttentionConfig(heads=2),
)

each_kind = pytest.mark.parametrize("kind", BASELINE_DECODERS)


def decoder_of(kind, memory_dim=E):
    return BASELINE_DECODERS[kind](replace(CONFIG, kind=kind), memory_dim=memory_dim)


def influence(answers, tokens):
    """How much each token pushes the sum of the squares of these answers: one number a token."""
    (push,) = torch.autograd.grad(answers.square().sum(), tokens, allow_unused=True)
    return torch.zeros(tokens.shape[:-1]) if push is None else push.abs().sum(-1)


def spoilt(x, layout):
    """The same tokens, with numbers in the padding that would show anywhere."""
    return x.detach().masked_fill(~layout.real[..., None], torch.nan)


@each_kind
@pytest.mark.parametrize("form", ["padded", "packed"])
def test_one_at_a_time_equals_all_at_once(form, kind):
    decoder = decoder_of(kind)
    caches = decoder.new_caches()
    x, source = torch.randn(B, T, D), Layout.padded(SOURCE)
    kept = decoder.keep(torch.randn(B, S, E), source)
    whole = decoder(x, layout=Layout.full(B, T), memory=kept)
    for t in range(T):
        layout, step = Layout.full(B, 1), x[:, t : t + 1]
        if form == "packed":
            layout, step = layout.as_packed(), step[:, 0]
        assert caches[0].place(layout).positions.unique().tolist() == [t]
        answer = decoder(step, layout=layout, memory=kept, caches=caches)
        torch.testing.assert_close(answer.view(B, D), whole[:, t])


@each_kind
def test_rows_go_on_from_where_each_of_them_stopped(kind):
    decoder = decoder_of(kind)
    caches = decoder.new_caches()
    x, pieces = torch.randn(B, T, D), [(2, 3, 0), (0, 1, 2), (5, 3, 3)]
    kept = decoder.keep(torch.randn(B, S, E), Layout.padded(SOURCE))
    whole = decoder(x, layout=Layout.padded((7, 7, 5)), memory=kept)
    read = [0] * B
    for piece in pieces:
        layout = Layout.padded(piece)
        if any(read):
            assert caches[0].place(layout).starts.tolist() == read
        new = [x[row, read[row] : read[row] + n] for row, n in enumerate(piece)]
        answers = decoder(
            spoilt(nn.utils.rnn.pad_sequence(new, batch_first=True), layout),
            layout=layout,
            memory=kept,
            caches=caches,
        )
        for row, n in enumerate(piece):
            there = whole[row, read[row] : read[row] + n]
            torch.testing.assert_close(answers[row, :n], there)
            read[row] += n
    assert caches[0].place(Layout.full(B, 1)).reach > max(read)


@each_kind
def test_a_placed_layout_stays_where_it_is(kind):
    decoder = decoder_of(kind)
    caches = decoder.new_caches()
    kept = decoder.keep(torch.randn(B, S, E), Layout.padded(SOURCE))
    decoder(torch.randn(B, T, D), layout=Layout.padded(LENGTHS), memory=kept, caches=caches)
    placed = caches[0].place(Layout.full(B, 1))
    assert placed.positions.flatten().tolist() == list(LENGTHS)
    assert caches[0].place(placed) is placed


@each_kind
def test_nothing_leaks_into_the_decoder_from_future_padding_or_neighbour(kind):
    decoder = decoder_of(kind)
    target, source = Layout.padded(LENGTHS), Layout.padded(SOURCE, longest=S + 2)
    x = torch.randn(B, T, D, requires_grad=True)
    memory = torch.randn(B, S + 2, E, requires_grad=True)

    def read(x, memory):
        return decoder(x, layout=target, memory=decoder.keep(memory, source))

    for row, length in enumerate(LENGTHS):
        for t in range(length):
            answer = read(x, memory)[row, t]
            seen = torch.zeros(B, T, dtype=torch.bool)
            seen[row, : t + 1] = True
            assert influence(answer, x).ne(0).equal(seen)
            seen = torch.zeros(B, S + 2, dtype=torch.bool)
            seen[row, : SOURCE[row]] = True
            assert influence(read(x, memory)[row, t], memory).ne(0).equal(seen)
    again = read(spoilt(x, target), spoilt(memory, source))[target.real]
    torch.testing.assert_close(again, read(x, memory)[target.real])
    again.sum().backward()
    assert all(weight.grad.isfinite().all() for weight in decoder.parameters())


@each_kind
def test_an_empty_memory_gives_nothing_to_look_at_and_no_nan(kind):
    decoder, x = decoder_of(kind), torch.randn(B, T, D)
    for source in (Layout.padded((0, 2, 0)), Layout.padded((0, 0, 0))):
        kept = decoder.keep(torch.randn(B, source.longest, E), source)
        assert decoder(x, layout=Layout.full(B, T), memory=kept).isfinite().all()


@each_kind
def test_nothing_to_read_leaves_the_state_as_it_is(kind):
    decoder = decoder_of(kind)
    caches = decoder.new_caches()
    kept = decoder.keep(torch.randn(B, S, E), Layout.padded(SOURCE))
    x = torch.randn(B, 1, D)
    expected = decoder(x, layout=Layout.full(B, 1), memory=kept)
    nothing = decoder(torch.zeros(B, 0, D), layout=Layout.full(B, 0), memory=kept, caches=caches)
    assert nothing.shape == (B, 0, D)
    answer = decoder(x, layout=Layout.full(B, 1), memory=kept, caches=caches)
    torch.testing.assert_close(answer, expected)


@each_kind
@pytest.mark.parametrize("reads", BASELINE_ENCODERS)
def test_encoders_and_decoders_mix(reads, kind):
    source = Layout.padded(SOURCE)
    encoder = BASELINE_ENCODERS[reads](replace(CONFIG, kind=reads, dim=2 * E))
    decoder = decoder_of(kind, memory_dim=encoder.dim)
    kept = decoder.keep(encoder(torch.randn(B, S, 2 * E), layout=source), source)
    assert decoder(torch.randn(B, T, D), layout=Layout.full(B, T), memory=kept).shape == (B, T, D)


@each_kind
def test_packed_is_padded(kind):
    decoder, layout = decoder_of(kind), Layout.padded(LENGTHS)
    x, kept = torch.randn(B, T, D), decoder.keep(torch.randn(B, S, E), Layout.padded(SOURCE))
    flat, padded = layout.as_packed(), decoder(x, layout=layout, memory=kept)
    torch.testing.assert_close(decoder(pack(x, flat), layout=flat, memory=kept), pack(padded, flat))


def test_convolutions_see_the_past_as_far_as_they_reach():
    decoder, length = decoder_of("tcn", memory_dim=None), 17
    x = torch.randn(1, length, D, requires_grad=True)
    for t in range(length):
        push = influence(decoder(x, layout=Layout.full(1, length))[:, t], x)[0]
        far = max(0, t - 2 * (3 - 1) * (1 + 2))
        assert push[t + 1 :].eq(0).all()
        assert push[far : t + 1].ne(0).all()
        assert push[:far].eq(0).all()


@pytest.mark.usefixtures("without_shape_hook")
def test_a_decoder_of_convolutions_refuses_other_masks_and_no_memory():
    decoder, x = decoder_of("tcn"), torch.zeros(B, T, D)
    with pytest.raises(ValueError, match="a decoder of kind tcn can only see causal"):
        decoder(x, layout=Layout.full(B, T), mask=everything)
    with pytest.raises(ValueError, match="attends to a memory; pass what `keep` returns"):
        decoder(x, layout=Layout.full(B, T))
