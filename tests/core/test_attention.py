"""The module: what may influence what, how heads are shared, and what it refuses in words."""

import pytest
import torch
from torch import nn

from glassformer.core.attention import Heads, MultiHeadAttention
from glassformer.core.caches import FixedCache, GrowingCache
from glassformer.core.kernels import KERNELS
from glassformer.core.layout import Layout, pack, pad
from glassformer.core.masks import causal, everything, window
from glassformer.core.positions import POSITIONS, make_position
from glassformer.core.scoring import Scoring

B, T, S, H, K, W, D = 2, 5, 7, 3, 4, 11, 13
LENGTHS = (5, 3)
TRAINED = [name for name in KERNELS if name != "flex"]  # flex has no gradients on a CPU


def layer_with(kernel="auto", heads=None, dim=D, **options):
    layer = MultiHeadAttention(dim, heads or Heads(H, key_width=K, value_width=W), **options)
    layer.kernel = kernel
    return layer


def influence(answers, tokens):
    """How much each token pushes the sum of these answers: one number a token."""
    (push,) = torch.autograd.grad(answers.sum(), tokens)
    return push.abs().sum(-1)


# What may influence what


@pytest.mark.parametrize("kernel", TRAINED)
@pytest.mark.parametrize("position", POSITIONS)
def test_nothing_leaks_back_from_the_future(kernel, position):
    layer, scheme = layer_with(kernel), make_position(position, D, H, T, width=K)
    x = torch.randn(B, T, D, requires_grad=True)
    for t in range(T):
        push = influence(layer(x, mask=causal, position=scheme)[:, t], x)
        assert push[:, t + 1 :].eq(0).all()
        assert push[:, : t + 1].ne(0).all()


@pytest.mark.parametrize("kernel", TRAINED)
@pytest.mark.parametrize("mask", [everything, causal, window(2)], ids=str)
def test_nothing_leaks_from_padding(kernel, mask):
    layer, layout = layer_with(kernel), Layout.padded(LENGTHS)
    x = torch.randn(B, T, D, requires_grad=True)
    push = influence(layer(x, mask=mask, layout=layout)[layout.real], x)
    assert push[~layout.real].eq(0).all()
    assert push[layout.real].ne(0).all()


@pytest.mark.parametrize("kernel", TRAINED)
def test_nothing_leaks_from_a_padded_memory(kernel):
    layer, layout = layer_with(kernel), Layout.padded((7, 2))
    memory = torch.randn(B, S, D, requires_grad=True)
    push = influence(layer(torch.randn(B, T, D), memory, memory_layout=layout), memory)
    assert push[~layout.real].eq(0).all()
    assert push[layout.real].ne(0).all()


@pytest.mark.parametrize("kernel", TRAINED)
@pytest.mark.parametrize("mask", [everything, causal], ids=str)
def test_nothing_leaks_from_a_neighbour_in_the_pack(kernel, mask):
    layer, layout = layer_with(kernel), Layout.packed(LENGTHS, budget=11)
    x = torch.randn(11, D, requires_grad=True)
    for row in range(len(LENGTHS)):
        ours = layout.row_of == row
        push = influence(layer(x, mask=mask, layout=layout)[ours], x)
        assert push[~ours].eq(0).all()
        assert push[ours].ne(0).all()


@pytest.mark.parametrize("position", POSITIONS)
def test_order_is_seen_only_through_positions(position):
    layer, x, order = layer_with(), torch.randn(B, T, D), torch.tensor([3, 0, 4, 1, 2])
    scheme = make_position(position, D, H, T, width=K)
    for weight in scheme.parameters():
        nn.init.normal_(weight)

    def answer(x):
        return layer(scheme.embed(x, Layout.full(B, T)), position=scheme)

    gap = (answer(x[:, order]) - answer(x)[:, order]).abs().max()
    assert gap < 1e-6 if position == "none" else gap > 1e-3


# Forms


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("mask", [everything, causal & window(3)], ids=str)
def test_packed_is_padded_and_both_are_one_by_one(position, mask):
    layer, layout = layer_with(), Layout.padded(LENGTHS)
    scheme, x, flat = (
        make_position(position, D, H, T, width=K),
        torch.randn(B, T, D),
        layout.as_packed(),
    )
    padded = layer(x, mask=mask, position=scheme, layout=layout)
    packed = layer(pack(x, flat), mask=mask, position=scheme, layout=flat)
    torch.testing.assert_close(packed, pack(padded, flat))
    alone = [layer(x[[b], :n], mask=mask, position=scheme)[0] for b, n in enumerate(LENGTHS)]
    torch.testing.assert_close(packed, torch.cat(alone))


def test_packed_queries_look_at_packed_or_padded_memory_alike():
    layer, ours, theirs = layer_with(), Layout.packed(LENGTHS), Layout.packed((2, 7))
    x, memory = torch.randn(8, D), torch.randn(9, D)
    packed = layer(x, memory, layout=ours, memory_layout=theirs)
    padded = layer(x, pad(memory, theirs), layout=ours, memory_layout=theirs.as_padded())
    torch.testing.assert_close(packed, padded)


# Heads


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_shared_heads_are_repeated_heads(kv_heads):
    few, many = MultiHeadAttention(24, Heads(6, kv_heads)), MultiHeadAttention(24, 6)
    repeated = {
        f"{name}.weight": getattr(few, name)
        .weight.unflatten(0, (kv_heads, 4))
        .repeat_interleave(6 // kv_heads, 0)
        .flatten(0, 1)
        for name in ("to_k", "to_v")
    }
    many.load_state_dict(few.state_dict() | repeated)
    x = torch.randn(B, T, 24)
    torch.testing.assert_close(few(x), many(x))


def test_each_projection_has_weights_of_its_own_and_names_that_read():
    layer = layer_with(bias=True, scoring=Scoring(qk_norm=True))
    shapes = {name: tuple(weight.shape) for name, weight in layer.named_parameters()}
    assert shapes == {
        "to_q.weight": (H * K, D),
        "to_q.bias": (H * K,),
        "to_k.weight": (H * K, D),
        "to_k.bias": (H * K,),
        "to_v.weight": (H * W, D),
        "to_v.bias": (H * W,),
        "to_out.weight": (D, H * W),
        "to_out.bias": (D,),
        "q_norm.weight": (K,),
        "k_norm.weight": (K,),
    }
    assert len({weight.data_ptr() for weight in layer.parameters()}) == len(shapes)


def test_without_the_output_projection_the_heads_lie_side_by_side():
    with_it, without = layer_with(), layer_with(project=False)
    without.load_state_dict(with_it.state_dict(), strict=False)
    x = torch.randn(B, T, D)
    assert without(x).shape == (B, T, H * W)
    torch.testing.assert_close(with_it.to_out(without(x)), with_it(x))


def test_qk_norm_makes_the_answer_blind_to_the_scale_of_queries_and_keys():
    layer, x = layer_with(scoring=Scoring(qk_norm=True)), torch.randn(B, T, D)
    before = layer(x)
    with torch.no_grad():
        layer.to_q.weight *= 7
        layer.to_k.weight *= 5
    torch.testing.assert_close(layer(x), before, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        layer.q_norm.weight *= 2
    assert (layer(x) - before).abs().max() > 1e-3


@pytest.mark.parametrize("kernel", ["plain", "fused"])
def test_dropout_drops_in_training_only_and_keeps_the_mean(kernel):
    layer, x = layer_with(kernel, dropout=0.5), torch.randn(1, T, D)
    torch.testing.assert_close(layer.eval()(x), layer.eval()(x))
    calm = layer(x)
    tries = torch.stack([layer.train()(x) for _ in range(400)])
    assert not torch.equal(tries[0], tries[1])
    torch.testing.assert_close(tries.mean(0), calm, atol=0.12, rtol=0)


def test_the_weights_show_who_was_looked_at():
    layer, x, layout = layer_with(), torch.randn(B, T, D), Layout.padded(LENGTHS)
    weights = layer.weights(x, mask=causal, layout=layout)
    assert weights.shape == (B, H, T, T)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T))
    assert weights.triu(1).eq(0).all()
    assert weights[1, :, :, 3:].eq(0).all()
    across = layer.weights(x, torch.randn(B, S, D))
    assert across.shape == (B, H, T, S)


# Refusals


REFUSALS = {
    "heads": (
        lambda: MultiHeadAttention(10, 3),
        "dim must be a multiple of heads: 10 is not a multiple of 3; change either, or give",
    ),
    "kv_heads": (
        lambda: MultiHeadAttention(12, Heads(6, 4)),
        "heads must be a multiple of kv_heads: 6 is not a multiple of 4; change either",
    ),
    "packed without layout": (
        lambda: layer_with()(torch.randn(8, D)),
        r"x is packed, \(8, 13\); pass the layout that assigns tokens to rows",
    ),
    "layout of another batch": (
        lambda: layer_with()(torch.randn(B, T, D), layout=Layout.full(B, T + 2)),
        r"x holds \(2, 5\) tokens, but its layout describes \(2, 7\); make the layout from this",
    ),
    "memory of another batch": (
        lambda: layer_with()(torch.randn(B, T, D), torch.randn(B + 1, S, D)),
        "there are 2 rows of queries, but 3 of keys; give every row of queries one row of keys",
    ),
    "position across": (
        lambda: layer_with()(
            torch.randn(B, T, D), torch.randn(B, S, D), position=make_position("none", D, H, T)
        ),
        "cross-attention takes no position and no cache; .* pass what `keep` returns",
    ),
    "cache across": (
        lambda: layer_with()(torch.randn(B, T, D), torch.randn(B, S, D), cache=GrowingCache()),
        "cross-attention takes no position and no cache",
    ),
    "cache of another batch": (
        lambda: layer_with()(
            torch.randn(B, T, D),
            cache=FixedCache(B + 1, T, heads=H, key_width=K, value_width=W),
        ),
        "the cache holds 3 rows, but the batch has 2; use a cache made for 2 rows",
    ),
    "lengths longer than the batch": (
        lambda: Layout.padded([3, 9], longest=T),
        "a row has 9 tokens, but the batch is only 5 long; shorten the row or widen the batch",
    ),
    "window of zero": (
        lambda: window(0),
        "a window must hold at least the position itself: got size 0, use 1 or more",
    ),
    "unknown position": (
        lambda: make_position("rotery", D, H, T),
        "unknown position 'rotery'; did you mean 'rotary'",
    ),
}


@pytest.mark.parametrize(("call", "words"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.usefixtures("without_shape_hook")
def test_bad_calls_are_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
