"""PagePool: sequences that share a memory never notice each other, and no page is ever lost."""

from itertools import count

import pytest
import torch
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from glassformer.core.attention import Heads, MultiHeadAttention
from glassformer.core.caches import PagePool
from glassformer.core.layout import Layout, pad
from glassformer.core.masks import causal
from glassformer.core.positions import make_position

LAYERS, G, SIZE, W, PAGES, D = 2, 5, 3, 7, 11, 13
H, K = 2 * G, 4  # K is even, since rotary turns pairs


def pool_of(pages=PAGES, layers=LAYERS):
    return PagePool(pages=pages, page_size=SIZE, layers=layers, heads=G, key_width=K, value_width=W)


def filled(*lengths, pages=PAGES):
    """A pool with an open sequence of each of these lengths."""
    pool = pool_of(pages)
    sequences = [pool.open() for _ in lengths]
    pool.extend(sequences, lengths)
    return pool, *sequences


# What a model sees


def conversation():
    """A pool, and a function that says more in some of its sequences and returns the answers."""
    attention = MultiHeadAttention(D, Heads(H, G, key_width=K, value_width=W))
    position, pool = make_position("rotary", D, H, 17, width=K), pool_of(pages=7, layers=1)

    @torch.no_grad()
    def say(said):
        layout, (cache,) = pool.extend([*said], [len(x) for x in said.values()])
        layout = layout.as_packed()
        x = torch.cat([*said.values()])
        answers = attention(x, mask=causal, position=position, cache=cache, layout=layout)
        return dict(zip(said, answers.split([len(x) for x in said.values()]), strict=True))

    @torch.no_grad()
    def alone(x):
        return attention(x[None], mask=causal, position=position)[0]

    return pool, say, alone


def test_reserved_pages_are_taken_and_what_is_not_used_is_given_back():
    pool = pool_of()
    a = pool.open()
    pool.reserve(a, 4 * SIZE + 1)
    assert (len(pool.pages_of(a)), pool.length(a), pool.free_pages) == (5, 0, PAGES - 5)
    with pytest.raises(ValueError, match="7 pages are needed, but only 6"):
        pool.reserve(pool.open(), 7 * SIZE)
    held = pool.pages_of(a)
    pool.extend([a], [SIZE + 1])
    assert pool.pages_of(a) == held  # nothing more is taken
    pool.trim(a)
    assert (pool.pages_of(a), pool.free_pages) == (held[:2], PAGES - 2)


def test_what_is_stored_is_loaded_wherever_its_pages_lie():
    pool, a, b = filled(SIZE, 0)
    pool.extend([b], [1])
    pool.reserve(a, 3 * SIZE)
    k, v = torch.randn(LAYERS, SIZE + 2, G, K), torch.randn(LAYERS, SIZE + 2, G, W)
    before = [x.clone() for x in pool.load(a)]
    first = SIZE - 1  # the rest begins in the middle of a page
    pool.store(a, k[:, :first], v[:, :first])
    pool.store(a, k[:, first:], v[:, first:])
    assert pool.length(a) == 2 * SIZE + 2
    for found, old, new in zip(pool.load(a), before, (k, v), strict=True):
        torch.testing.assert_close(found, torch.cat([old, new], 1), rtol=0, atol=0)
    pool.advance(a, 1)
    assert pool.length(a) == 3 * SIZE


def test_packed_keys_are_those_of_padded_rows():
    rows = torch.randn(2, G, 2, K), torch.randn(2, G, 2, W)  # two new tokens of each
    found = {}
    for packed in (False, True):
        pool, a, b = filled(4, 1)
        torch.manual_seed(3)
        pool.k.normal_()
        pool.v.normal_()
        layout, (cache, _) = pool.extend([a, b], [2, 2], packed=packed)
        new = [x.transpose(1, 2).flatten(0, 1) if packed else x for x in rows]
        k, _, keys = cache.append(*new, layout)
        assert keys.is_packed == packed
        found[packed] = pad(k, keys).transpose(1, 2) if packed else k
    real = (torch.arange(6) < torch.tensor([6, 3])[:, None])[:, None, :, None]
    torch.testing.assert_close(found[True], found[False].where(real, 0.0), rtol=0, atol=0)


def test_pages_of_a_closed_sequence_serve_the_next_one():
    pool, say, alone = conversation()
    a, b = pool.open(), pool.open()
    x, y, z = torch.randn(9, D), torch.randn(11, D), torch.randn(8, D)
    for start in range(0, 9, 3):  # in turns, so that their pages lie mixed
        say({a: x[start : start + 3], b: y[start : start + 3]})
    assert pool.free_pages == 1
    pool.close(a)
    c = pool.open()
    first = say({c: z[:7], b: y[9:10]})
    assert pool.free_pages == 0
    last = say({b: y[10:], c: z[7:]})
    torch.testing.assert_close(torch.cat([first[c], last[c]]), alone(z))
    torch.testing.assert_close(torch.cat([first[b], last[b]]), alone(y)[9:])


@pytest.mark.parametrize("shared", [0, 1, 5, 6, 7, None])
@pytest.mark.parametrize("order", ["twin first", "parent first", "together"])
def test_a_fork_goes_its_own_way_and_its_parent_does_not_notice(shared, order):
    pool, say, alone = conversation()
    parent, x, old, new = pool.open(), *(torch.randn(n, D) for n in (7, 4, 5))
    before = say({parent: x})[parent]
    twin, free = pool.fork(parent, shared), pool.free_pages
    assert free == 4  # sharing costs nothing
    said = {twin: new, parent: old}
    if order == "together":
        answers = say(said)
    else:
        turns = [twin, parent] if order == "twin first" else [parent, twin]
        answers = {who: say({who: said[who]})[who] for who in turns}
    begun = x[:shared]
    torch.testing.assert_close(torch.cat([before, answers[parent]]), alone(torch.cat([x, old])))
    torch.testing.assert_close(answers[twin], alone(torch.cat([begun, new]))[len(begun) :])
    pool.close(parent)
    more = torch.randn(2, D)
    expected = alone(torch.cat([begun, new, more]))[-2:]
    torch.testing.assert_close(say({twin: more})[twin], expected)


# Any program of open, extend, fork and close


def written(tokens, layer, width):
    """What a layer keeps of these tokens: (tokens, G, width), each number different."""
    channel = torch.arange(G * width).view(G, width)
    return torch.tensor(tokens).view(-1, 1, 1) * 64.0 + channel + layer / 2


class Program(RuleBasedStateMachine):
    """A pool beside its model: a list of tokens a sequence, and the pages they would lie on."""

    def __init__(self):
        super().__init__()
        self.pool, self.tokens, self.pages, self.words = pool_of(), {}, {}, count()

    def one(self, data):
        return data.draw(st.sampled_from(sorted(self.tokens)))

    @rule()
    def open(self):
        sequence = self.pool.open()
        assert sequence not in self.tokens
        self.tokens[sequence], self.pages[sequence] = [], []

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def fork(self, data):
        parent = self.one(data)
        length = data.draw(st.none() | st.integers(0, len(self.tokens[parent])))
        twin = self.pool.fork(parent, length)
        self.tokens[twin] = self.tokens[parent][:length]
        self.pages[twin] = self.pages[parent][: -(-len(self.tokens[twin]) // SIZE)]

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def close(self, data):
        sequence = self.one(data)
        self.pool.close(sequence)
        del self.tokens[sequence], self.pages[sequence]

    @precondition(lambda self: self.tokens)
    @rule(data=st.data(), packed=st.booleans())
    def extend(self, data, packed):
        some = st.lists(st.sampled_from(sorted(self.tokens)), min_size=1, unique=True)
        counts = {sequence: data.draw(st.integers(0, 2 * SIZE)) for sequence in data.draw(some)}
        pages = self.pages_after(counts)
        if distinct(pages) > PAGES:
            with pytest.raises(ValueError, match="pages are needed"):
                self.pool.extend([*counts], [*counts.values()])
            return  # and nothing has changed, as `reads_back` sees
        new = {n: [next(self.words) for _ in range(c)] for n, c in counts.items()}
        self.write(new, packed)
        self.pages = pages
        for sequence, tokens in new.items():
            self.tokens[sequence] = self.tokens[sequence] + tokens

    def pages_after(self, counts):
        """Whose pages are whose once there is room: one that others read is copied first."""
        pages = {sequence: list(theirs) for sequence, theirs in self.pages.items()}
        for sequence, new in counts.items():
            length, ours = len(self.tokens[sequence]), pages[sequence]
            if new and length % SIZE and sum(ours[-1] in some for some in pages.values()) > 1:
                ours[-1] = object()
            ours += [object() for _ in range(-(-(length + new) // SIZE) - len(ours))]
        return pages

    def write(self, new, packed):
        layout, caches = self.pool.extend([*new], [len(tokens) for tokens in new.values()])
        ends, tokens = layout.as_packed(), [token for some in new.values() for token in some]
        for layer, cache in enumerate(caches):
            k, v = written(tokens, layer, K), written(tokens, layer, W)
            if packed:
                cache.append(k, v, ends)
            else:
                cache.append(pad(k, ends).transpose(1, 2), pad(v, ends).transpose(1, 2), layout)

    @invariant()
    def reads_back(self):
        assert self.pool.free_pages == PAGES - distinct(self.pages)
        assert {n: self.pool.length(n) for n in self.tokens} == {
            n: len(tokens) for n, tokens in self.tokens.items()
        }
        if not self.tokens:
            return
        layout, caches = self.pool.extend([*self.tokens], [0] * len(self.tokens))
        nothing = [torch.zeros(len(self.tokens), G, 0, width) for width in (K, W)]
        for layer, cache in enumerate(caches):
            k, v, keys = cache.append(*nothing, layout)
            assert keys.lengths.tolist() == [*map(len, self.tokens.values())]
            for row, tokens in enumerate(self.tokens.values()):
                assert k[row, :, : len(tokens)].equal(written(tokens, layer, K).transpose(0, 1))
                assert v[row, :, : len(tokens)].equal(written(tokens, layer, W).transpose(0, 1))

    def teardown(self):
        for sequence in [*self.tokens]:
            self.pool.close(sequence)
        assert self.pool.free_pages == PAGES


def distinct(pages):
    return len({id(page) for theirs in pages.values() for page in theirs})


def test_whatever_is_opened_extended_forked_and_closed_each_sequence_reads_its_own_tokens():
    run_state_machine_as_test(Program, settings=settings(max_examples=31, stateful_step_count=19))


def test_any_free_page_serves_any_sequence():
    pool, *sequences = filled(*[1] * PAGES)
    for sequence in sequences[::2]:
        pool.close(sequence)
    wide = pool.open()
    pool.extend([wide], [6 * SIZE])  # every other page, and all of them
    assert pool.free_pages == 0
    assert pool.length(wide) == 18


# Refusals


def test_a_pool_that_is_full_says_so_and_changes_nothing():
    pool, a, b = filled(4, 2)
    with pytest.raises(
        ValueError,
        match=r"^9 pages are needed, but only 8 of 11 are free; "
        "close a sequence, or make a larger pool$",
    ):
        pool.extend([b, a], [1, 27])
    assert (pool.length(a), pool.length(b), pool.free_pages) == (4, 2, 8)
    pool.extend([b, a], [1, 26])
    assert (pool.length(a), pool.length(b), pool.free_pages) == (30, 3, 0)


def test_the_last_owner_of_a_shared_page_need_not_copy_it():
    pool, a = filled(4, pages=3)
    b = pool.fork(a)
    with pytest.raises(ValueError, match=r"^2 pages are needed, but only 1 of 3 are free"):
        pool.extend([a, b], [1, 3])
    pool.extend([a, b], [1, 2])  # one copy for two writers
    assert pool.free_pages == 0


@pytest.mark.parametrize("act", ["length", "fork", "close"])
def test_a_sequence_that_is_not_open_is_refused_in_words(act):
    pool, a, b, _ = filled(4, 2, 1)
    pool.close(b)
    with pytest.raises(ValueError, match=r"^sequence 2 is not open; choose from \[1, 3\]$"):
        getattr(pool, act)(b)
    with pytest.raises(ValueError, match=r"^sequence 2 is not open; choose from \[1, 3\]$"):
        pool.extend([a, b], [1, 1])
    assert pool.length(a) == 4


def test_a_sequence_twice_in_a_batch_is_refused_in_words():
    pool, a, b = filled(4, 2)
    words = r"^a sequence can appear in a batch only once, got \[1, 2, 1\]; fork it to continue"
    with pytest.raises(ValueError, match=words):
        pool.extend([a, b, a], [1, 1, 1])
    assert pool.length(a) == 4


def test_every_sequence_needs_its_count():
    pool, a, b = filled(4, 2)
    with pytest.raises(
        ValueError, match=r"^2 sequences and 1 counts; give each sequence its count$"
    ):
        pool.extend([a, b], [1])
    with pytest.raises(
        ValueError, match=r"^0 sequences and 0 counts; give each sequence its count$"
    ):
        pool.extend([], [])


@pytest.mark.parametrize("length", [5, -1])
def test_sharing_tokens_that_are_not_there_is_refused_in_words(length):
    pool, a = filled(4)
    words = f"^cannot share {length} tokens of sequence 1, which has 4; choose from 0 to 4$"
    with pytest.raises(ValueError, match=words):
        pool.fork(a, length)
    assert pool.open() == 2  # no twin was begun


def test_a_negative_count_is_refused_and_changes_nothing():
    pool, a = filled(4)
    with pytest.raises(ValueError, match=r"^lengths must be 0 or more, got -1$"):
        pool.extend([a], [-1])
    assert pool.length(a) == 4


def test_a_paged_cache_takes_only_the_layout_that_came_with_it():
    pool, a = filled(4)
    _, caches = pool.extend([a], [1])
    with pytest.raises(
        ValueError, match=r"^a paged cache needs the layout that PagePool.extend returned with it$"
    ):
        caches[0].place(Layout.full(1, 1))


@pytest.mark.parametrize("which", ["k", "v"])
def test_a_paged_cache_refuses_a_gradient_in_words(which):
    pool, a = filled(4)
    layout, (cache, _) = pool.extend([a], [1])
    k, v = torch.zeros(1, G, 1, K), torch.zeros(1, G, 1, W)
    {"k": k, "v": v}[which].requires_grad_()
    with pytest.raises(
        ValueError,
        match=r"^a paged cache writes in place and keeps no gradient; "
        r"call it under torch.no_grad\(\), or use a GrowingCache$",
    ):
        cache.append(k, v, layout)
    with torch.no_grad():
        assert cache.append(k, v, layout)[2].lengths.tolist() == [5]
