"""Kinds of attention: each is its own formula, the slow way, and one contract holds for all."""

import inspect
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from glassformer.core.attention import Heads, MultiHeadAttention
from glassformer.core.caches import FixedCache, GrowingCache
from glassformer.core.kinds import KINDS
from glassformer.core.kinds.linear import CHUNK, LinearState
from glassformer.core.layout import Layout, pack, pad
from glassformer.core.masks import causal, documents, everything, prefix, window
from glassformer.core.positions import POSITIONS, Position, make_position
from glassformer.core.shapes import split_heads

B, T, S, H, G, W, D, E = 3, 7, 5, 6, 2, 11, 13, 19
K = 10  # even, since rotary turns pairs
LENGTHS, MEMORY_LENGTHS = (7, 2, 5), (5, 1, 3)
SIZES = {"summary": 17, "max_length": 23}
MASKS = [everything, causal, window(3), causal & window(2), causal | prefix(2), documents([2, 5])]
CACHES = {
    "GrowingCache": GrowingCache,
    "FixedCache": lambda: FixedCache(B, T, heads=G, key_width=K, value_width=W),
    "LinearState": LinearState,
}

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
    q = F.elu(split_heads(layer.to_q(x), H)) + 1
    k = F.elu(split_heads(layer.to_k(memory), G)) + 1
    v = split_heads(layer.to_v(memory), G)
    k, v = k.repeat_interleave(H // G, 1), v.repeat_interleave(H // G, 1)
    weights = (q @ k.mT) * mask.table(queries, keys)
    answer = weights @ v / weights.sum(-1, keepdim=True)
    return layer.to_out(answer.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("length", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 1])
@pytest.mark.parametrize("case", ["everything", "causal", "across"])
def test_linear_and_its_gradients_are_the_quadratic_formula_wherever_a_chunk_ends(case, length):
    layer, mask = layer_of("linear", bias=True).double(), causal if case == "causal" else everything
    queries = keys = Layout.padded((length, length // 2 + 1, 1))
    x = memory = torch.randn(B, length, D, dtype=torch.float64, requires_grad=True)
    across = {}
    if case == "across":
        x, queries = torch.randn(B, T, D, dtype=torch.float64), Layout.padded(LENGTHS)
        across = {"memory": memory, "memory_layout": keys}
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
        assert state.sums.shape == (B, G, K, W + 1)


@pytest.mark.parametrize("form", [Layout.padded, Layout.packed])
@torch.no_grad()
def test_ragged_pieces_equal_all_at_once_and_stand_where_a_growing_cache_puts_them(form):
    layer, softmax, state, cache = (
        layer_of("linear"),
        layer_of("softmax"),
        LinearState(),
        GrowingCache(),
    )
    x = torch.randn(B, T + 4, D)  # the last four are padding, and looked at by nobody
    whole = layer(x, mask=causal)
    for counts in ((2, 2, 2), (1, 0, 1), (0, 0, 1), (4, 0, 1)):
        ours, theirs = state.place(form(counts)), cache.place(form(counts))
        assert (ours.reach, ours.positions.tolist()) == (theirs.reach, theirs.positions.tolist())
        row = torch.arange(B)[:, None] if ours.row_of is None else ours.row_of
        piece, expected = x[row, ours.positions], whole[row, ours.positions]
        answer = layer(piece, mask=causal, cache=state, layout=ours)
        torch.testing.assert_close(answer[ours.real], expected[ours.real])
        softmax(piece, cache=cache, layout=theirs)


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
@torch.no_grad()
def test_linformer_is_its_formula_one_number_at_a_time(name):
    layer, layout = layer_of("linformer", bias=True, summary=3), Layout.padded(LENGTHS)
    x, position = torch.randn(B, T, D), scheme_of(name)
    answer = layer(x, position=position, layout=layout)[layout.real]
    rows = [one_by_one(layer, row[:n], position) for row, n in zip(x, LENGTHS, strict=True)]
    torch.testing.assert_close(answer, torch.cat(rows))


def test_more_padding_changes_nothing_in_a_linformer():
    layer, x = layer_of("linformer", bias=True), torch.randn(B, 23, D)
    wide = layer(x, layout=Layout.padded(LENGTHS, longest=23))[:, :T]
    torch.testing.assert_close(layer(x[:, :T], layout=Layout.padded(LENGTHS)), wide)


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
    ours, theirs = (
        [(p.name, p.kind, p.default) for p in inspect.signature(call).parameters.values()]
        for call in (getattr(KINDS[kind], method), getattr(MultiHeadAttention, method))
    )
    assert ours == theirs


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
    assert answer is None or torch.equal(answer, layer(x)) != inside


@each_kind
@pytest.mark.parametrize("name", CACHES)
@torch.no_grad()
def test_a_cache_serves_or_is_refused_by_name(kind, name):
    layer, x, call = layer_of(kind), torch.randn(B, T, D), {"cache": CACHES[name]()}
    mask = everything if kind == "linformer" else causal
    pieces = [answer_unless(name, layer, x[:, n : n + 3], mask=mask, **call) for n in (0, 3, 6)]
    if pieces[0] is not None:
        torch.testing.assert_close(torch.cat(pieces, dim=1), layer(x, mask=mask))


@each_kind
def test_no_kind_leaks_from_padding_and_who_sees_nothing_answers_zero(kind):
    layer, layout = layer_of(kind), Layout.padded((7, 0, 5))
    x = torch.randn(B, T, D, requires_grad=True)
    across = layer(torch.randn(B, S, D), x, memory_layout=layout)
    assert across.ne(0).any(-1).any(-1).tolist() == [True, False, True]
    for answer in (layer(x, layout=layout)[layout.real], across):
        assert influence(answer, x).ne(0).eq(layout.real).all()


@each_kind
def test_no_kind_leaks_from_a_neighbour_in_the_pack(kind):
    layer, layout = layer_of(kind, bias=True), Layout.packed(LENGTHS, budget=17)
    x = torch.randn(17, D, requires_grad=True)
    for row in range(B):
        ours = layout.row_of == row
        assert influence(layer(x, layout=layout)[ours], x).ne(0).eq(ours).all()


@pytest.mark.parametrize(("kind", "mask"), [*((k, everything) for k in KINDS), ("linear", causal)])
def test_packed_is_padded_and_both_are_one_by_one(kind, mask):
    layer, flat, x = layer_of(kind), Layout.packed(LENGTHS), torch.randn(sum(LENGTHS), D)
    packed = layer(x, mask=mask, layout=flat)
    padded = layer(pad(x, flat), mask=mask, layout=flat.as_padded())
    torch.testing.assert_close(packed, pack(padded, flat))
    alone = [layer(row[None], mask=mask)[0] for row in x.split(LENGTHS)]
    torch.testing.assert_close(packed, torch.cat(alone))


@each_kind
def test_a_memory_packed_padded_or_kept_is_the_same(kind):
    layer, theirs = layer_of(kind, memory_dim=E), Layout.packed(MEMORY_LENGTHS)
    x, memory, ours = torch.randn(14, D), torch.randn(9, E), Layout.packed(LENGTHS)
    packed = layer(x, memory, layout=ours, memory_layout=theirs)
    padded = layer(x, pad(memory, theirs), layout=ours, memory_layout=theirs.as_padded())
    torch.testing.assert_close(packed, padded)
    torch.testing.assert_close(packed, layer(x, layer.keep(memory, theirs), layout=ours))


@each_kind
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_shared_heads_are_repeated_heads(kind, groups):
    few, many, x = (
        layer_of(kind, 24, Heads(H, groups)),
        layer_of(kind, 24, H),
        torch.randn(B, T, 24),
    )
    weights = few.state_dict()
    for name in ("to_k.weight", "to_v.weight"):
        shared = weights[name].unflatten(0, (groups, 4))
        weights[name] = shared.repeat_interleave(H // groups, 0).flatten(0, 1)
    many.load_state_dict(weights)
    torch.testing.assert_close(few(x), many(x))


# Refusals


def state_of(rows):
    state = LinearState()
    layer_of("linear")(torch.randn(rows, T, D), cache=state)
    return state


MEMORY, PLACED = torch.zeros(B, S, D), Layout.full(B, T).shifted(torch.ones(1).long(), reach=8)
OR = "or kind = softmax"
REFUSALS = [
    ("linear", {"mask": window(3)}, r"apply window\(3\); use causal or everything, " + OR),
    ("linear", {"mask": causal, "memory": MEMORY}, "apply causal to a memory; use everything, "),
    (
        "linear",
        {"position": "rotary"},
        "turned features are not positive; use none, learned, sinus",
    ),
    ("linear", {"position": "t5"}, "t5: it adds to scores, and there are none; use none, learned"),
    (
        "linear",
        {"cache": GrowingCache()},
        "it remembers sums, not keys; pass a LinearState, or use",
    ),
    ("softmax", {"cache": LinearState()}, "holds sums, from which no keys come back; use kind = l"),
    ("linear", {"cache": state_of(4)}, "the cache holds 4 rows, but the batch has 3; use a cache"),
    ("linear", {"cache": state_of(4), "layout": PLACED}, "holds 4 rows, but the batch has 3; use"),
    ("linear", {"position": "none", "memory": MEMORY}, "takes no position and no cache; .* `keep`"),
    ("linear", {"cache": LinearState(), "memory": MEMORY}, "no position and no cache; .* `keep`"),
    (
        "linformer",
        {"position": "none", "memory": MEMORY},
        "takes no position and no cache; .* `kee",
    ),
    ("linformer", {"mask": causal}, "causal: each row of its summary mixes all pos.* future ones"),
    ("linformer", {"position": "alibi"}, "stands at no one distance; use none, .*, rotary, " + OR),
    ("linformer", {"cache": GrowingCache()}, "summary is of whole sequences; leave the cache out,"),
]


@pytest.mark.parametrize(("kind", "call", "words"), REFUSALS)
def test_bad_calls_are_refused_in_words(kind, call, words):
    if "position" in call:
        call = call | {"position": scheme_of(call["position"])}
    with pytest.raises(ValueError, match=words):
        layer_of(kind)(torch.randn(B, T, D), **call)


def test_a_linformer_says_how_long_is_too_long_and_how_short_too_short():
    with pytest.raises(ValueError, match="at most 23 positions, but the batch has 29; shorten the"):
        layer_of("linformer")(torch.randn(B, 29, D))
    with pytest.raises(ValueError, match="must be 1 or more, got 0 and 23; 64 rows are a common"):
        layer_of("linformer", summary=0)
