"""Bahdanau's decoder: its formulas, step by step, and what may reach what."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from glassformer.config import StackConfig
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import everything
from glassformer.errors import GlassformerError
from glassformer.models.baselines import BASELINE_ENCODERS, BahdanauDecoder

B, T, S, D, E = 3, 7, 11, 13, 5
LENGTHS, SOURCE = (7, 3, 5), (2, 11, 5)
CONFIG = StackConfig(kind="gru", dim=D, depth=2, dropout=0.0)


def decoder_of(**settings):
    return BahdanauDecoder(replace(CONFIG, **settings), memory_dim=E)


def influence(answers, tokens):
    """How much each token pushes the sum of the squares of these answers: one number a token."""
    (push,) = torch.autograd.grad(answers.square().sum(), tokens, allow_unused=True)
    return torch.zeros(tokens.shape[:-1]) if push is None else push.abs().sum(-1)


def spoilt(x, layout):
    """The same tokens, with numbers in the padding that would show anywhere."""
    return x.detach().masked_fill(~layout.real[..., None], torch.nan)


def by_the_formulas(decoder, x, memory):
    """One row, step by step, as in the paper; every matrix by its name."""
    attention, gru, depth = decoder.attention, decoder.layers, decoder.layers.num_layers
    state, answers = torch.tanh(decoder.to_start(memory.mean(0))).chunk(depth), []
    for word in x:
        scores = torch.stack(
            [
                attention.to_score.weight[0]
                @ torch.tanh(attention.to_q.weight @ state[-1] + attention.to_k.weight @ key)
                for key in memory
            ]
        )
        alpha = scores.exp() / scores.exp().sum()
        context = sum(a * value for a, value in zip(alpha, memory, strict=True))
        below, after = torch.cat([word, context]), []
        for layer in range(depth):
            from_below = getattr(gru, f"weight_ih_l{layer}") @ below
            from_below = (from_below + getattr(gru, f"bias_ih_l{layer}")).chunk(3)
            before = getattr(gru, f"weight_hh_l{layer}") @ state[layer]
            before = (before + getattr(gru, f"bias_hh_l{layer}")).chunk(3)
            reset = torch.sigmoid(from_below[0] + before[0])
            update = torch.sigmoid(from_below[1] + before[1])
            candidate = torch.tanh(from_below[2] + reset * before[2])
            below = (1 - update) * candidate + update * state[layer]
            after.append(below)
        state = after
        merged = torch.cat([state[-1], context])
        answers.append(decoder.to_out.weight @ merged + decoder.to_out.bias)
    return torch.stack(answers)


@pytest.mark.parametrize("depth", [1, 3])
def test_the_decoder_does_what_the_formulas_say_and_packed_is_padded(depth):
    decoder = decoder_of(depth=depth)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, E)
    target, source = Layout.padded(LENGTHS), Layout.padded(SOURCE)
    padded = decoder(x, layout=target, memory=decoder.keep(memory, source))
    rows = zip(x, LENGTHS, memory, SOURCE, strict=True)
    expected = [by_the_formulas(decoder, a[:n], m[:s]) for a, n, m, s in rows]
    flat, flat_source = target.as_packed(), source.as_packed()
    torch.testing.assert_close(pack(padded, flat), torch.cat(expected), atol=1e-5, rtol=1e-5)
    kept = decoder.keep(pack(memory, flat_source), flat_source)
    packed = decoder(pack(x, flat), layout=flat, memory=kept)
    torch.testing.assert_close(packed, pack(padded, flat))


@pytest.mark.parametrize("form", ["padded", "packed"])
def test_one_at_a_time_equals_all_at_once(form):
    decoder = decoder_of()
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


def test_rows_go_on_from_where_each_of_them_stopped():
    decoder = decoder_of()
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


def test_a_placed_layout_stays_where_it_is():
    decoder = decoder_of()
    caches = decoder.new_caches()
    kept = decoder.keep(torch.randn(B, S, E), Layout.padded(SOURCE))
    decoder(torch.randn(B, T, D), layout=Layout.padded(LENGTHS), memory=kept, caches=caches)
    placed = caches[0].place(Layout.full(B, 1))
    assert placed.positions.flatten().tolist() == list(LENGTHS)
    assert caches[0].place(placed) is placed


def test_keys_are_projected_once():
    decoder, calls = decoder_of(), []
    decoder.attention.to_k.register_forward_hook(lambda *_: calls.append(1))
    kept = decoder.keep(torch.randn(B, S, E), Layout.padded(SOURCE))
    decoder(torch.randn(B, T, D), layout=Layout.full(B, T), memory=kept)
    assert len(calls) == 1


def test_nothing_leaks_into_the_decoder_from_future_padding_or_neighbour():
    decoder = decoder_of()
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


def test_an_empty_memory_gives_nothing_to_look_at_and_no_nan():
    decoder, x = decoder_of(), torch.randn(B, T, D)
    for source in (Layout.padded((0, 2, 0)), Layout.padded((0, 0, 0))):
        kept = decoder.keep(torch.randn(B, source.longest, E), source)
        assert decoder(x, layout=Layout.full(B, T), memory=kept).isfinite().all()


def test_nothing_to_read_leaves_the_state_as_it_is():
    decoder = decoder_of()
    caches = decoder.new_caches()
    kept = decoder.keep(torch.randn(B, S, E), Layout.padded(SOURCE))
    x = torch.randn(B, 1, D)
    expected = decoder(x, layout=Layout.full(B, 1), memory=kept)
    nothing = decoder(torch.zeros(B, 0, D), layout=Layout.full(B, 0), memory=kept, caches=caches)
    assert nothing.shape == (B, 0, D)
    answer = decoder(x, layout=Layout.full(B, 1), memory=kept, caches=caches)
    torch.testing.assert_close(answer, expected)


@pytest.mark.parametrize("kind", BASELINE_ENCODERS)
def test_encoders_and_the_decoder_mix(kind):
    source = Layout.padded(SOURCE)
    encoder = BASELINE_ENCODERS[kind](replace(CONFIG, kind=kind, dim=2 * E))
    decoder = BahdanauDecoder(CONFIG, memory_dim=encoder.dim)
    kept = decoder.keep(encoder(torch.randn(B, S, 2 * E), layout=source), source)
    assert decoder(torch.randn(B, T, D), layout=Layout.full(B, T), memory=kept).shape == (B, T, D)


def test_the_state_keeps_its_precision_under_autocast():
    decoder, layout, seen = decoder_of(), Layout.padded(LENGTHS), []
    decoder.layers.register_forward_hook(lambda *_: seen.append(torch.is_autocast_enabled("cpu")))
    caches = decoder.new_caches()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        kept = decoder.keep(torch.randn(B, S, E), Layout.padded(SOURCE))
        decoder(torch.randn(B, T, D), layout=layout, memory=kept, caches=caches)
    assert seen == [False] * T
    assert caches[0].state.dtype == torch.float32


def test_layers_drop_between_them_in_training():
    assert decoder_of(dropout=0.3).layers.dropout == 0.3


# Refusals


def decode(memory_rows=B, **call):
    decoder = decoder_of()
    kept = decoder.keep(torch.zeros(memory_rows, S, E), Layout.full(memory_rows, S))
    call = {"memory": kept, "layout": Layout.full(B, T)} | call
    return decoder(torch.zeros(B, T, D), **call)


def filled_caches():
    caches = decoder_of().new_caches()
    caches[0].hold(torch.zeros(2, B + 2, D), Layout.full(B + 2, 1))
    return caches


REFUSALS = {
    "mask of a decoder": (
        lambda: decode(mask=everything),
        'a gru decoder can only see causal, got the mask everything; .* kind = "attention"',
    ),
    "no memory": (
        lambda: decode(memory=None),
        "a gru decoder looks at a memory; pass what `keep` returns",
    ),
    "memory of another batch": (
        lambda: decode(memory_rows=5),
        "the batch has 3 rows, its memory 5; give every row its memory",
    ),
    "cache of another batch": (
        lambda: decode(caches=filled_caches()),
        "the cache holds 5 rows, but the batch has 3; use a cache made for 3 rows",
    ),
    "keys in a recurrent cache": (
        lambda: filled_caches()[0].append(
            torch.zeros(B, 1, T, D), torch.zeros(B, 1, T, D), Layout.full(B, T)
        ),
        "holds a state, from which no keys come back; use the kind",
    ),
    "another kind of decoder": (
        lambda: BahdanauDecoder(replace(CONFIG, kind="lstm"), memory_dim=E),
        "unknown kind of recurrent decoder 'lstm'; the choices are gru",
    ),
    "a decoder alone": (
        lambda: BahdanauDecoder(CONFIG),
        "looks at a memory before each step, and this model has none; add an encoder",
    ),
}


@pytest.mark.parametrize(("call", "words"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.usefixtures("without_shape_hook")
def test_bad_calls_are_refused_in_words(call, words):
    with pytest.raises((ValueError, GlassformerError), match=words):
        call()
