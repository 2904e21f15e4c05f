"""Caches: piece by piece equals all at once, whatever the pieces, the rows and the positions."""

import pytest
import torch
from torch import nn

from glassformer.core.attention import Heads, MultiHeadAttention
from glassformer.core.caches import FixedCache, GrowingCache, PagePool, StateCache
from glassformer.core.layout import Layout, pack, pad
from glassformer.core.masks import causal, everything, window
from glassformer.core.positions import POSITIONS, make_position

B, T, H, G, W, D, E = 3, 7, 6, 2, 11, 13, 19
K = 10  # even, since rotary turns pairs
CAPACITY = 17
SIZES = {"heads": G, "key_width": K, "value_width": W}


def growing(rows):
    cache = GrowingCache()
    return lambda layout: (cache.place(layout), cache)


def fixed(rows):
    cache = FixedCache(rows, CAPACITY, **SIZES)
    return lambda layout: (cache.place(layout), cache)


def paged(rows):
    pool = PagePool(pages=13, page_size=3, layers=1, **SIZES)
    sequences = [pool.open() for _ in range(rows)]

    def room(layout):
        placed, (cache,) = pool.extend(sequences, layout.lengths.tolist())
        return placed.as_packed() if layout.is_packed else placed, cache

    return room


def asker(name, mask):
    """Attention with these positions; without a cache, by the kernel that is there to be read."""
    attention = MultiHeadAttention(D, Heads(H, G, key_width=K, value_width=W))
    position = make_position(name, D, H, CAPACITY, width=K)
    for parameter in position.parameters():
        nn.init.normal_(parameter)

    @torch.no_grad()
    def ask(x, layout, cache=None):
        attention.kernel = "plain" if cache is None else "auto"
        x = position.embed(x, layout)
        return attention(x, mask=mask, position=position, cache=cache, layout=layout)

    return ask


each_cache = pytest.mark.parametrize("make", [growing, fixed, paged])
each_position = pytest.mark.parametrize("name", POSITIONS)
each_mask = pytest.mark.parametrize("mask", [causal, causal & window(3)], ids=str)

# Piece by piece


@each_cache
@each_position
@each_mask
@pytest.mark.parametrize("steps", [[1] * T, [3, 1, 1, 2]], ids=["tokens", "chunks"])
def test_piece_by_piece_equals_all_at_once(make, name, mask, steps):
    ask, room, x = asker(name, mask), make(B), torch.randn(B, T, D)
    pieces = [ask(x, *room(Layout.full(*x.shape[:2]))) for x in x.split(steps, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), ask(x, Layout.full(B, T)))


SCHEDULE = [[7, 3, 5], [1, 1, 1], [2, 0, 1]]  # new tokens of each row, step by step
TOTALS = [sum(lengths) for lengths in zip(*SCHEDULE, strict=True)]


def in_steps(ask, room, rows, form):
    """The answers for each row, by a batch of ragged rows that take these steps together."""
    answers, read = [[] for _ in rows], [0] * len(rows)
    for lengths in SCHEDULE:
        packed = Layout.packed(lengths)
        new = [row[done : done + n] for row, done, n in zip(rows, read, lengths, strict=True)]
        if form == "packed":
            answer = ask(torch.cat(new), *room(packed))
        else:
            even = len(set(lengths)) == 1
            layout = Layout.full(len(rows), lengths[0]) if even else Layout.padded(lengths)
            x = pad(torch.cat(new), packed)
            x[~layout.real] = 97.0  # what lies in the padding must not matter
            answer = pack(ask(x, *room(layout)), packed)
        for row, piece in enumerate(answer.split(lengths)):
            answers[row].append(piece)
        read = [done + n for done, n in zip(read, lengths, strict=True)]
    return [torch.cat(pieces) for pieces in answers]


@each_cache
@each_position
@each_mask
@pytest.mark.parametrize("form", ["padded", "packed"])
def test_ragged_rows_in_one_cache_answer_as_each_row_alone(make, name, mask, form):
    ask, rows = asker(name, mask), [torch.randn(total, D) for total in TOTALS]
    together = in_steps(ask, make(B), rows, form)
    for answers, row in zip(together, rows, strict=True):
        torch.testing.assert_close(answers, ask(row[None], Layout.full(1, len(row)))[0])


@each_cache
def test_full_rows_may_become_ragged_later(make):
    ask, room, x = asker("rotary", causal), make(B), torch.randn(B, T, D)
    ask(x[:, :4], *room(Layout.full(B, 4)))
    last = ask(x[:, 4:], *room(Layout.padded([3, 1, 2])))
    expected = ask(x, Layout.full(B, T))[:, 4:]
    real = Layout.padded([3, 1, 2]).real
    torch.testing.assert_close(last[real], expected[real])


# Gradients


@pytest.mark.parametrize("lengths", [[5, 5, 5], [5, 2, 3]], ids=["full", "ragged"])
def test_gradients_pass_through_a_growing_cache_as_if_all_came_at_once(lengths):
    attention = MultiHeadAttention(D, Heads(H, G, K, W)).double()
    x, weight = torch.randn(2, B, 5 + 2, D, dtype=torch.float64)
    x.requires_grad_()
    first, cache = (
        Layout.full(B, 5) if lengths == [5] * B else Layout.padded(lengths),
        GrowingCache(),
    )
    pieces = [
        attention(x[:, :5], mask=causal, cache=cache, layout=first),
        attention(x[:, 5:], mask=causal, cache=cache),
    ]
    real = torch.cat([first.real, torch.ones(B, 2, dtype=torch.bool)], dim=1)
    asked = [x, *attention.parameters()]
    ours = torch.autograd.grad((torch.cat(pieces, dim=1) * weight)[real].sum(), asked)

    rows = [attention(row[seen][None], mask=causal)[0] for row, seen in zip(x, real, strict=True)]
    theirs = torch.autograd.grad((torch.cat(rows) * weight[real]).sum(), asked)
    for our, their in zip(ours, theirs, strict=True):
        assert our.ne(0).any()
        torch.testing.assert_close(our, their)


@pytest.mark.parametrize("which", ["k", "v"])
def test_a_fixed_cache_refuses_a_gradient_in_words(which):
    k, v = torch.zeros(B, G, 1, K), torch.zeros(B, G, 1, W)
    {"k": k, "v": v}[which].requires_grad_()
    cache = FixedCache(B, CAPACITY, **SIZES)
    layout = cache.place(Layout.full(B, 1))
    with pytest.raises(
        ValueError,
        match=r"^a FixedCache writes in place and keeps no gradient; "
        r"call it under torch.no_grad\(\), or use a GrowingCache$",
    ):
        cache.append(k, v, layout)
    with torch.no_grad():
        assert cache.append(k, v, layout)[2].lengths.tolist() == [1] * B


# Fixed


def test_a_step_of_a_fixed_cache_keeps_every_shape_and_address():
    cache, facts = FixedCache(B, CAPACITY, **SIZES), set()
    for lengths in SCHEDULE:
        layout = cache.place(Layout.packed(lengths))
        *found, keys = cache.append(
            torch.randn(sum(lengths), G, K), torch.randn(sum(lengths), G, W), layout
        )
        assert (keys.rows, keys.longest, keys.reach) == (B, CAPACITY, CAPACITY)
        facts.add(tuple((x.data_ptr(), x.shape, x.stride()) for x in (*found, keys.lengths)))
    assert len(facts) == 1
    assert cache.lengths.tolist() == TOTALS


def test_a_cleared_cache_is_as_new():
    ask, cache = asker("alibi", causal), FixedCache(B, CAPACITY, **SIZES)
    old, new = ([torch.randn(total, D) for total in TOTALS] for _ in range(2))
    in_steps(ask, lambda layout: (cache.place(layout), cache), old, "padded")
    cache.clear()
    assert cache.lengths.tolist() == [0] * B
    ours = in_steps(ask, lambda layout: (cache.place(layout), cache), new, "padded")
    theirs = in_steps(ask, fixed(B), new, "padded")
    assert all(our.equal(their) for our, their in zip(ours, theirs, strict=True))


FULL = (
    "the cache has room for 5 tokens per row, but a row has 7; "
    "make one with a capacity of at least 7"
)


@pytest.mark.parametrize("form", [Layout.padded, Layout.packed])
def test_a_fixed_cache_that_is_full_says_so(form):
    cache = FixedCache(2, 5, **SIZES)
    cache.append(*vectors(2, 3), cache.place(Layout.full(2, 3)))
    layout = cache.place(form([1, 4]))
    k, v = vectors(2, 4)
    if layout.is_packed:
        k, v = (pack(x.transpose(1, 2), layout) for x in (k, v))
    with pytest.raises(ValueError, match=f"^{FULL}$"):
        cache.append(k, v, layout)


def test_a_fixed_cache_forgets_what_it_refused():
    cache = FixedCache(2, 5, **SIZES)
    cache.append(*vectors(2, 3), cache.place(Layout.full(2, 3)))
    with pytest.raises(ValueError, match=f"^{FULL}$"):
        cache.append(*vectors(2, 4), cache.place(Layout.full(2, 4)))
    assert cache.lengths.tolist() == [3, 3]


# Cross-attention


def counted(module):
    """How often a module is called from now on."""
    calls = []
    module.register_forward_hook(lambda *_: calls.append(1))
    return calls


@pytest.mark.parametrize("form", ["full", "padded", "packed"])
def test_a_kept_memory_is_computed_once_and_answers_as_the_memory_does(form):
    attention = MultiHeadAttention(D, Heads(H, G, K, W), memory_dim=E)
    lengths = [5, 5, 5] if form == "full" else [5, 2, 3]
    rows, x = [torch.randn(n, E) for n in lengths], torch.randn(B, T, D)
    layout = Layout.full(B, 5) if form == "full" else Layout.packed(lengths)
    memory = torch.cat(rows)
    if form != "packed":
        layout, memory = layout.as_padded(), pad(memory, Layout.packed(lengths))
        memory[~layout.real.expand(B, -1)] = 97.0  # what lies in the padding must not matter
    direct = attention(x, memory, memory_layout=layout)

    keys, values = counted(attention.to_k), counted(attention.to_v)
    kept = attention.keep(memory, layout)
    steps = [attention(token, kept) for token in x.split(1, dim=1)]
    assert (len(keys), len(values)) == (1, 1)
    torch.testing.assert_close(torch.cat(steps, dim=1), direct)
    torch.testing.assert_close(attention(x, kept), direct)
    alone = [attention(one[None], row[None])[0] for one, row in zip(x, rows, strict=True)]
    torch.testing.assert_close(torch.stack(alone), direct)


def test_a_cache_or_a_position_in_cross_attention_is_refused_in_words():
    attention, x = MultiHeadAttention(D, Heads(H, G, K, W)), torch.zeros(B, T, D)
    for extra in ({"cache": GrowingCache()}, {"position": make_position("none", D, H, T)}):
        with pytest.raises(
            ValueError,
            match=r"^cross-attention takes no position and no cache; "
            "to compute the memory's keys once, pass what `keep` returns$",
        ):
            attention(x, x, mask=everything, **extra)


# Another batch


def test_a_growing_cache_knows_how_far_each_row_really_reaches():
    cache = GrowingCache()
    cache.append(*vectors(2, 5), Layout.padded([2, 5]))
    layout = cache.place(Layout.padded([5, 2]))
    assert layout.reach == 7
    keys, _, held = cache.append(*vectors(2, 5), layout)
    assert keys.shape[2] == held.longest == 7
    assert held.lengths.tolist() == [7, 7]


def vectors(rows, steps):
    return torch.zeros(rows, G, steps, K), torch.zeros(rows, G, steps, W)


@each_cache
@pytest.mark.parametrize("form", [Layout.padded, Layout.packed])
def test_a_cache_for_another_batch_is_refused_in_words(make, form):
    placed, cache = make(B)(Layout.full(B, 1))
    cache.append(*vectors(B, 1), placed)
    other = form([1, 1])
    k, v = vectors(2, 1) if not other.is_packed else (torch.zeros(2, G, K), torch.zeros(2, G, W))
    words = "^the cache holds 3 rows, but the batch has 2; use a cache made for 2 rows$"
    with pytest.raises(ValueError, match=words):
        cache.append(k, v, other.shifted(torch.tensor([1, 1]), reach=2))
    if make is not paged:  # whose layouts come from the pool
        with pytest.raises(ValueError, match=words):
            cache.place(other)


def test_a_state_stands_after_what_was_read_whatever_the_bound():
    cache = StateCache()
    cache.hold(torch.zeros(2, 3), Layout.full(2, 1).shifted(torch.tensor([3]), 20))
    assert cache.place(Layout.full(2, 1)).positions.tolist() == [[4], [4]]


def test_a_fixed_state_stays_in_place_and_is_told_where_tokens_stand():
    cache, state = StateCache(), torch.arange(6.0).view(2, 3)
    cache.fixed = True
    cache.hold(state, Layout.full(2, 1))
    cache.hold(state + 1, Layout.full(2, 1).shifted(torch.tensor([1, 1]), 9))
    assert cache.state is state
    cache.choose(torch.tensor([1, 1]))
    assert cache.state is state
    assert state.tolist() == [[4.0, 5.0, 6.0], [4.0, 5.0, 6.0]]
    with pytest.raises(ValueError, match="counts no tokens; pass a layout with its positions"):
        cache.place(Layout.full(2, 1))
