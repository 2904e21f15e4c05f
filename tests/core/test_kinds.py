"""Kinds of attention: each is its own formula, the slow way, and one contract holds for all."""

import inspect
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from glassformer.core.attention import Heads, MultiHeadAttention
from glassformer.core.caches import GrowingCache
from glassformer.core.kinds import KINDS
from glassformer.core.kinds.linear import CHUNK, LinearState
from glassformer.core.layout import Layout, pack, pad
from glassformer.core.masks import causal, documents, everything, prefix, window
from glassformer.core.positions import POSITIONS, Position, make_position
from glassformer.core.shapes import split_heads

B, T, S, H, G, W, D, E = 3, 7, 5, 6, 2, 11, 13, 19
K = 10  # even, since rotary turns pairs
LENGTHS, SIZES = (7, 2, 5), {"summary": 17, "max_length": 23}
MASKS = [everything, causal, window(3), causal & window(2), causal | prefix(2), documents([2, 5])]

each_kind = pytest.mark.parametrize("kind", KINDS)


def layer_of(kind, dim=D, heads=None, **options):
    """A kind that needs sizes of its own gets them."""
    wanted = inspect.signature(KINDS[kind]).parameters
    sizes = {name: size for name, size in SIZES.items() if name in wanted}
    return KINDS[kind](dim, heads or Heads(H, G, K, W), **sizes | options)


def scheme_of(name):
    scheme = make_position(name, D, H, SIZES["max_length"], width=K)
    for weight in scheme.parameters():
        nn.init.normal_(weight)
    return scheme


def influence(answers, tokens):
    """How much each token pushes the sum of these answers: one number a token."""
    (push,) = torch.autograd.grad(answers.sum(), tokens, retain_graph=True)
    return push.abs().sum(-1)


def answer_unless(words, layer, x, **call):
    """The answer, or None when the call is refused in these words."""
    try:
        return layer(x, **call)
    except ValueError as error:
        if words in str(error):
            return None
        raise


# linear


def quadratically(layer, x, memory, mask, queries, keys):
    """The paper's formula with every weight written out."""
    q, v = split_heads(layer.to_q(x), H), split_heads(layer.to_v(memory), G)
    k = split_heads(layer.to_k(memory), G).repeat_interleave(H // G, 1)
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).mT * mask.table(queries, keys)
    answer = weights @ v.repeat_interleave(H // G, 1) / weights.sum(-1, keepdim=True)
    return layer.to_out(answer.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("length", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 1])
@pytest.mark.parametrize("case", ["everything", "causal", "across"])
def test_linear_and_its_gradients_are_the_quadratic_formula_wherever_a_chunk_ends(case, length):
    layer, mask = layer_of("linear", bias=True).double(), causal if case == "causal" else everything
    queries = keys = Layout.padded((length, length // 2 + 1, 1))
    x = memory = torch.randn(B, length, D, dtype=torch.float64, requires_grad=True)
    across = {"memory": memory, "memory_layout": keys} if case == "across" else {}
    if across:
        x, queries = torch.randn(B, T, D, dtype=torch.float64), Layout.padded(LENGTHS)
    fast = layer(x, mask=mask, layout=queries, **across)[queries.real]
    slow = quadratically(layer, x, memory, mask, queries, keys)[queries.real]
    torch.testing.assert_close(fast, slow)
    leaves, push = [memory, *layer.parameters()], torch.randn_like(fast)
    ours, theirs = (torch.autograd.grad(answer, leaves, push) for answer in (fast, slow))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("kind", "mask"), [("linear", causal), ("linformer", everything)])
def test_what_training_keeps_grows_with_the_length_not_with_its_square(kind, mask):
    layer = layer_of(kind, **({} if kind == "linear" else {"summary": 3, "max_length": 512}))

    def kept(length):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()), id):
            layer(torch.randn(1, length, D), mask=mask)
        return sum(sizes)

    assert kept(512) < 2.1 * kept(256)


@pytest.mark.parametrize("mask", [everything, causal], ids=str)
def test_one_at_a_time_equals_all_at_once_in_a_state_that_does_not_grow(mask):
    layer, x, state = layer_of("linear"), torch.randn(B, T, D, requires_grad=True), LinearState()
    for t in range(T):
        one, all_at_once = layer(x[:, [t]], mask=mask, cache=state), layer(x[:, : t + 1], mask=mask)
        torch.testing.assert_close(one, all_at_once[:, [t]])
        torch.testing.assert_close(influence(one, x), influence(all_at_once[:, t], x))
        assert state.state.shape == (B, G, K, W + 1)


@pytest.mark.parametrize("form", [Layout.padded, Layout.packed])
@torch.no_grad()
def test_ragged_pieces_equal_all_at_once_and_stand_where_a_growing_cache_puts_them(form):
    linear, state = layer_of("linear"), LinearState()
    softmax, cache = layer_of("softmax"), GrowingCache()
    x = torch.randn(B, T + 4, D)  # padding may stand beyond T
    whole = linear(x, mask=causal)
    for counts in ((2, 2, 2), (1, 0, 1), (0, 0, 1), (4, 0, 1)):
        ours, theirs = state.place(form(counts)), cache.place(form(counts))
        assert (ours.reach, ours.positions.tolist()) == (theirs.reach, theirs.positions.tolist())
        at = torch.arange(B)[:, None] if ours.row_of is None else ours.row_of, ours.positions
        answer = linear(x[at], mask=causal, cache=state, layout=ours)
        torch.testing.assert_close(answer[ours.real], whole[at][ours.real])
        softmax(x[at], cache=cache, layout=theirs)


@pytest.mark.usefixtures("half_on_cpu")
@pytest.mark.parametrize("autocast", [False, True])
def test_sums_beyond_half_precision_do_not_overflow(autocast):
    layer, x = layer_of("linear"), 97 * torch.randn(2, 307, D)
    fine = layer(x, mask=causal)
    with torch.autocast("cpu", dtype=torch.float16, enabled=autocast):
        rough = layer(x, mask=causal) if autocast else layer.half()(x.half(), mask=causal)
    assert rough.dtype == torch.float16
    torch.testing.assert_close(rough.float(), fine, atol=0.5, rtol=0.02)


def test_without_a_mask_linear_attention_sees_no_order():
    layer, x, order = layer_of("linear"), torch.randn(B, T, D), torch.tensor([3, 0, 6, 4, 1, 5, 2])
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])
    assert (layer(x[:, order], mask=causal) - layer(x, mask=causal)[:, order]).abs().max() > 1e-3


# linformer


def one_by_one(layer, x, position):
    """The paper's formula for one row, a query, a head and a line of the summary at a time."""
    q, k, v = layer.to_q(x).view(-1, H, K), layer.to_k(x).view(-1, G, K), layer.to_v(x)
    (q, k), v, answers = position.turn(q, k, Layout.packed([len(x)])), v.view(-1, G, W), []
    for t in range(len(x)):
        for head in range(H):
            g = head // (H // G)
            keys = [sum(map(torch.mul, line, k[:, g])) for line in layer.key_summary]
            values = [sum(map(torch.mul, line, v[:, g])) for line in layer.value_summary]
            scores = torch.stack([q[t, head] @ key for key in keys]) / math.sqrt(K)
            answers.append(scores.softmax(0) @ torch.stack(values))
    return layer.to_out(torch.cat(answers).view(len(x), H * W))


@pytest.mark.parametrize("name", ["none", "rotary"])
@pytest.mark.parametrize("longest", [7, 23])
@torch.no_grad()
def test_linformer_is_its_formula_row_by_row_however_much_padding_there_is(name, longest):
    layer, x = layer_of("linformer", bias=True, summary=3), torch.randn(B, longest, D)
    layout, position = Layout.padded(LENGTHS, longest=longest), scheme_of(name)
    answer = layer(x, position=position, layout=layout)[layout.real]
    rows = [one_by_one(layer, row[:n], position) for row, n in zip(x, LENGTHS, strict=True)]
    torch.testing.assert_close(answer, torch.cat(rows))


def test_a_linformer_reads_the_columns_of_the_positions():
    layer, x, starts = layer_of("linformer"), torch.randn(B, T, D), torch.tensor([16, 21, 18])
    moved = layer(x, layout=Layout.padded(LENGTHS).shifted(starts, reach=23))
    for weight in (layer.key_summary, layer.value_summary):
        weight.data = weight.data.roll(-21, dims=1)
    torch.testing.assert_close(layer(x[[1], :2]), moved[[1], :2])


# What holds for every kind


@each_kind
@pytest.mark.parametrize("method", ["forward", "keep"])
def test_every_kind_is_called_like_softmax_attention(kind, method):
    ours, theirs = getattr(KINDS[kind], method), getattr(MultiHeadAttention, method)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))


@each_kind
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_a_mask_is_obeyed_or_refused_by_name(kind, mask):
    x, layout = torch.randn(B, T, D, requires_grad=True), Layout.full(B, T)
    answer = answer_unless(f"cannot apply {mask}", layer_of(kind), x, mask=mask)
    seen = mask.table(layout, layout)[0, 0] | torch.eye(T).bool()
    for t in range(T if answer is not None else 0):
        assert influence(answer[:, t], x).ne(0).eq(seen[t]).all()


@each_kind
@pytest.mark.parametrize("name", POSITIONS)
def test_a_position_shows_or_is_refused_by_name(kind, name):
    layer, x, scheme = layer_of(kind), torch.randn(B, T, D), scheme_of(name)
    answer = answer_unless(f"cannot apply {name}: ", layer, x, position=scheme)
    inside = any(getattr(type(scheme), d) is not getattr(Position, d) for d in ("turn", "bias"))
    assert inside if answer is None else torch.equal(answer, layer(x)) != inside


@each_kind
@pytest.mark.parametrize("make", [GrowingCache, LinearState])
def test_a_cache_serves_or_is_refused_by_name(kind, make):
    layer, x, cache = layer_of(kind), torch.randn(B, T, D), make()
    pieces = [answer_unless(make.__name__, layer, x, cache=cache) for x in x.split(3, dim=1)]
    if pieces[-1] is not None:
        torch.testing.assert_close(pieces[-1], layer(x)[:, -1:])


@each_kind
@pytest.mark.parametrize("form", ["padded", "packed"])
def test_no_kind_leaks_from_padding_or_from_a_neighbour(kind, form):
    layout = Layout.padded(LENGTHS) if form == "padded" else Layout.packed(LENGTHS, budget=17)
    x = torch.randn(*layout.real.shape, D, requires_grad=True)
    answer, rows = layer_of(kind, bias=True)(x, layout=layout), torch.arange(B)[:, None]
    for row in range(B):
        ours = ((rows if form == "padded" else layout.row_of) == row) & layout.real
        assert influence(answer[ours], x).ne(0).eq(ours).all()


@pytest.mark.parametrize(("kind", "mask"), [*((k, everything) for k in KINDS), ("linear", causal)])
def test_packed_is_padded_and_both_are_one_by_one(kind, mask):
    layer, flat, x = layer_of(kind), Layout.packed(LENGTHS), torch.randn(sum(LENGTHS), D)
    packed = layer(x, mask=mask, layout=flat)
    padded = layer(pad(x, flat), mask=mask, layout=flat.as_padded())
    torch.testing.assert_close(packed, pack(padded, flat))
    alone = [layer(row[None], mask=mask)[0] for row in x.split(LENGTHS)]
    torch.testing.assert_close(packed, torch.cat(alone))


@each_kind
def test_a_memory_packed_padded_or_kept_is_the_same_and_an_empty_one_answers_zero(kind):
    layer, x, flat = layer_of(kind, memory_dim=E), torch.randn(B, T, D), Layout.packed((5, 0, 2))
    memory, layout = torch.randn(B, S, E, requires_grad=True), flat.as_padded()
    padded = layer(x, memory, memory_layout=layout)
    packed = layer(x, pack(memory, flat), memory_layout=flat)
    torch.testing.assert_close(padded, packed)
    ours = Layout.full(B, T).as_packed()
    kept = layer(pack(x, ours), layer.keep(memory, layout), layout=ours)
    torch.testing.assert_close(pack(padded, ours), kept)
    assert padded.ne(0).any(-1).any(-1).tolist() == [True, False, True]
    assert influence(padded, memory).ne(0).eq(layout.real).all()


@each_kind
@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_shared_heads_are_repeated_heads(kind, kv_heads):
    few, many = layer_of(kind, 24, Heads(H, kv_heads)), layer_of(kind, 24, H)
    x, weights = torch.randn(B, T, 24), few.state_dict()
    for name in ("to_k.weight", "to_v.weight"):
        shared = weights[name].unflatten(0, (kv_heads, 4))
        weights[name] = shared.repeat_interleave(H // kv_heads, 0).flatten(0, 1)
    many.load_state_dict(weights)
    torch.testing.assert_close(few(x), many(x))


# Refusals

MEMORY, SHIFTED = torch.zeros(B, S, D), Layout.full(B, T).shifted(torch.tensor([17]), reach=24)
FULLER = LinearState()
FULLER.hold(torch.zeros(4, G, K, W + 1), Layout.full(4, T))
REFUSALS = [
    ("linear", {"mask": window(3)}, r"apply window\(3\); use causal or everything, or kind = so"),
    ("linear", {"mask": causal, "memory": MEMORY}, "apply causal to a memory; use everything, or"),
    ("linear", {"position": "rotary"}, "rotary: rotated features are not positive; use none, le"),
    ("linear", {"position": "t5"}, "t5: it adds to the scores, and there are none; use none, "),
    ("linear", {"cache": GrowingCache()}, "keeps sums, not keys; pass a LinearState, or use"),
    (
        "softmax",
        {"cache": LinearState()},
        "cannot continue from a LinearState, which holds no keys; pass a",
    ),
    ("linear", {"cache": FULLER}, "the cache holds 4 rows, but the batch has 3; use a cache made"),
    ("linear", {"cache": FULLER, "layout": SHIFTED}, "holds 4 rows, but the batch has 3; use a"),
    ("linear", {"cache": LinearState(), "memory": MEMORY}, "no position and no cache; .* `keep`"),
    ("linear", {"position": "none", "memory": MEMORY}, "no position and no cache; .* `keep`"),
    ("linformer", {"position": "none", "memory": MEMORY}, "no position and no cache; .* `keep`"),
    ("linformer", {"mask": causal}, "causal: each row of its summary mixes all .*; use everything"),
    ("linformer", {"position": "alibi"}, "has no position of its own; use none, .*, rotary, or"),
    ("linformer", {"cache": GrowingCache()}, "summarises whole sequences; leave the cache out,"),
    ("linformer", {"layout": SHIFTED}, "at most 23 positions, but the batch has 24; shorten the"),
]


@pytest.mark.parametrize(("kind", "call", "words"), REFUSALS)
def test_bad_calls_are_refused_in_words(kind, call, words):
    if "position" in call:
        call = call | {"position": scheme_of(call["position"])}
    with pytest.raises(ValueError, match=words):
        layer_of(kind)(torch.randn(B, T, D), **call)


def test_a_summary_of_nothing_is_refused():
    with pytest.raises(ValueError, match="must be 1 or more, got 0 and 23; 64 is a common summary"):
        layer_of("linformer", summary=0)
