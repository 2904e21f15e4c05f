"""Bahdanau's decoder: its formulas, and what it refuses."""

from dataclasses import replace

import pytest
import torch

from glassformer.config import StackConfig
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import everything
from glassformer.errors import GlassformerError
from glassformer.models.baselines import BahdanauDecoder

B, T, S, D, E = 3, 7, 11, 13, 5
LENGTHS, SOURCE = (7, 3, 5), (2, 11, 5)
CONFIG = StackConfig(kind="gru", dim=D, depth=2, dropout=0.0)


def decoder_of(**settings):
    return BahdanauDecoder(replace(CONFIG, **settings), memory_dim=E)


def gates(layers, layer, below, before):
    """What each gate is told from below and from the step before."""
    told = [
        getattr(layers, f"weight_{side}_l{layer}") @ vector
        + getattr(layers, f"bias_{side}_l{layer}")
        for side, vector in (("ih", below), ("hh", before))
    ]
    return [part.chunk(len(part) // D) for part in told]


def gru_by_the_formulas(layers, layer, below, before, kept):
    below, before_gates = gates(layers, layer, below, before)
    reset = torch.sigmoid(below[0] + before_gates[0])
    update = torch.sigmoid(below[1] + before_gates[1])
    candidate = torch.tanh(below[2] + reset * before_gates[2])
    return (1 - update) * candidate + update * before, kept


def lstm_by_the_formulas(layers, layer, below, before, kept):
    told = [sum(pair) for pair in zip(*gates(layers, layer, below, before), strict=True)]
    enter, forget, leave = (torch.sigmoid(told[gate]) for gate in (0, 1, 3))
    kept = forget * kept + enter * torch.tanh(told[2])
    return leave * torch.tanh(kept), kept


def by_the_formulas(decoder, x, memory):
    """One row, step by step, as in the paper; every matrix by its name."""
    attention, depth = decoder.attention, decoder.layers.num_layers
    cell = {"GRU": gru_by_the_formulas, "LSTM": lstm_by_the_formulas}[type(decoder.layers).__name__]
    state, answers = torch.tanh(decoder.to_start(memory.mean(0))).chunk(depth), []
    kept = [torch.zeros(D)] * depth
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
            below, kept[layer] = cell(decoder.layers, layer, below, state[layer], kept[layer])
            after.append(below)
        state = after
        merged = torch.cat([state[-1], context])
        answers.append(decoder.to_out.weight @ merged + decoder.to_out.bias)
    return torch.stack(answers)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_the_decoder_does_what_the_formulas_say_and_packed_is_padded(kind, depth):
    decoder = decoder_of(kind=kind, depth=depth)
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


def test_keys_are_projected_once():
    decoder, calls = decoder_of(), []
    decoder.attention.to_k.register_forward_hook(lambda *_: calls.append(1))
    kept = decoder.keep(torch.randn(B, S, E), Layout.padded(SOURCE))
    decoder(torch.randn(B, T, D), layout=Layout.full(B, T), memory=kept)
    assert len(calls) == 1


@pytest.mark.usefixtures("half_on_cpu")
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_the_state_keeps_its_precision_under_autocast(kind):
    decoder, layout, seen = decoder_of(kind=kind), Layout.padded(LENGTHS), []
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
        'a decoder of kind gru can only see causal, got the mask everything; .* kind = "attention"',
    ),
    "no memory": (
        lambda: decode(memory=None),
        "a decoder of kind gru attends to a memory; pass what `keep` returns",
    ),
    "memory of another batch": (
        lambda: decode(memory_rows=5),
        "the batch has 3 rows, but its memory 5; give every row one row of memory",
    ),
    "cache of another batch": (
        lambda: decode(caches=filled_caches()),
        "the cache holds 5 rows, but the batch has 3; use a cache made for 3 rows",
    ),
    "keys in a recurrent cache": (
        lambda: MultiHeadAttention(D, 1)(torch.zeros(B, T, D), cache=filled_caches()[0]),
        "softmax attention cannot continue from a RecurrentCache, which holds no keys; pass a Grow",
    ),
    "another kind of decoder": (
        lambda: BahdanauDecoder(replace(CONFIG, kind="tcn"), memory_dim=E),
        "unknown kind of recurrent decoder 'tcn'; the choices are gru, lstm",
    ),
    "a decoder alone": (
        lambda: BahdanauDecoder(CONFIG),
        "attends to a memory, and this model has none; add an encoder",
    ),
}


@pytest.mark.parametrize(("call", "words"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.usefixtures("without_shape_hook")
def test_bad_calls_are_refused_in_words(call, words):
    with pytest.raises((ValueError, GlassformerError), match=words):
        call()
