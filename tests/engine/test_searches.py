"""Searches in the engine find what they find alone, whoever joins and leaves meanwhile."""

import random
from dataclasses import replace

import pytest
import torch
from test_engine import END, PAGE, V, as_text, assert_nothing_lost, assert_same, translator

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.core.layout import Layout
from glassformer.decode import Fusion, Request, decode
from glassformer.engine import Engine, GenerationRequest, SearchRequest, Source
from glassformer.errors import GlassformerError
from glassformer.models.incremental import translating

__all__ = ["translator"]  # a fixture

BEAM = DecodeConfig(method="beam", best=2, beam=BeamConfig(width=3))
SETTINGS = [
    BEAM,
    replace(BEAM, best=1, alternatives=2, no_repeat=2, min_length=3),
    replace(BEAM, beam=BeamConfig(width=4, groups=2, penalty="gnmt")),
    replace(BEAM, stop=("ab", "k")),
    DecodeConfig(method="sample", best=3),
]


def likes_five(tokens, sizes):
    """A language model that prefers one token."""
    scores = torch.zeros(len(tokens), V, dtype=torch.float64)
    scores[:, 5] = 2.0
    return scores.log_softmax(-1)


RULES = [
    {},
    {"forbidden": [[4], [7, 9]]},
    {"prefix": [[6, 8]]},
    {"fusion": Fusion(likes_five, 0.5, END)},
]


def some_source(translator, rng):
    """What a decoder attends to, as the engine and as a scorer want it."""
    ids = torch.tensor([[rng.randrange(3, V) for _ in range(rng.randint(1, 9))]])
    layout = Layout.full(1, ids.shape[1])
    return Source(ids.shape[1], lambda: translator.encode(ids, layout)), (ids, layout)


def some_search(translator, rng, **changed):
    """A random search, and what it finds alone."""
    source, read = some_source(translator, rng)
    config, rules = rng.choice(SETTINGS), rng.choice(RULES)
    config = replace(config, max_length=rng.randint(4, 9)) if not changed else changed["decode"]
    row = Request(end=END, seeds=[rng.randrange(99)], detokenize=as_text, **rules)
    [expected] = decode(translating(translator, *read, first=1), row, config)
    return SearchRequest(prompt=(1,), source=source, decode=config, rules=row), expected


def finished(engine, requests, rng):
    """What becomes of requests that come one by one, while others are worked on."""
    found, numbers, rest = {}, {}, list(requests)
    while rest or engine.busy:
        while rest and rng.random() < 0.4:
            number = len(requests) - len(rest)
            numbers[engine.submit(rest.pop(0))] = number
        for one in engine.step() if engine.busy else ():
            if one.finished:
                found[numbers[one.number]] = [one.answer, *one.others]
    return [found[number] for number in range(len(requests))]


@pytest.mark.parametrize("exact", [False, True])
def test_searches_join_and_leave_at_every_step(translator, exact):
    rng = random.Random(3)
    searches, expected = zip(*(some_search(translator, rng) for _ in range(12)), strict=True)
    engine = Engine(
        translator, pages=60, memory_pages=30, page_size=PAGE, rows=16, chunk=8, exact=exact
    )
    for found, others in zip(finished(engine, searches, rng), expected, strict=True):
        assert len(found) == len(others)
        for one, other in zip(found, others, strict=True):
            assert_same(one, other)
    assert_nothing_lost(engine)


def test_searches_that_begin_alike_take_their_steps_together(translator):
    rng, config = random.Random(4), replace(BEAM, max_length=7)
    searches = []
    for _ in range(5):
        source, _ = some_source(translator, rng)
        rules = Request(end=END)
        searches.append(SearchRequest(prompt=(1,), source=source, decode=config, rules=rules))
    engine = Engine(translator, pages=60, memory_pages=30, page_size=PAGE, rows=15)
    for one in searches:
        engine.submit(one)
    engine.step()
    [together] = engine.searches.running
    assert len(together.firsts) == 5
    late = replace(searches[0], decode=replace(config, no_repeat=2))
    engine.submit(late)  # waits for rows, then goes on by itself
    while engine.busy:
        engine.step()
    assert_nothing_lost(engine)


def test_a_search_goes_on_beside_plain_texts(translator):
    rng = random.Random(5)
    search, [best, *_] = some_search(translator, rng, decode=replace(BEAM, max_length=6))
    source, read = some_source(translator, rng)
    config = DecodeConfig(max_length=8)
    plain = GenerationRequest(prompt=(1,), source=source, decode=config, end=END)
    [[text]] = decode(translating(translator, *read, first=1), Request(end=END), config)
    engine = Engine(translator, pages=60, memory_pages=30, page_size=PAGE)
    found = list(engine.answers([plain, search, plain]))
    for one, other in zip(found, (text, best, text), strict=True):
        assert_same(one, other)
    assert_nothing_lost(engine)


def test_a_cancelled_search_is_gone_before_the_next_step(translator):
    rng, config = random.Random(6), replace(BEAM, max_length=9, min_length=8)
    engine = Engine(translator, pages=60, memory_pages=30, page_size=PAGE)
    searches = [some_search(translator, rng, decode=config) for _ in range(3)]
    first, second, third = (engine.submit(one) for one, _ in searches)
    engine.step()
    engine.step()
    engine.cancel(second)
    assert len(engine.scheduler.running) == len(engine.steps.due()) == 2 * 3
    found = {}
    while engine.busy:
        found |= {one.number: one.answer for one in engine.step() if one.finished}
    assert found.keys() == {first, third}
    assert_same(found[first], searches[0][1][0])
    assert_same(found[third], searches[2][1][0])
    assert_nothing_lost(engine)


def test_a_limit_that_is_known_late_is_kept(translator):
    request, _ = some_search(translator, random.Random(7), decode=replace(BEAM, max_length=9))
    engine = Engine(translator, pages=60, memory_pages=30, page_size=PAGE)
    [found] = engine.answers([replace(request, fewer=lambda: 2)])
    assert len(found.token_scores) <= 2


def test_what_is_wrong_with_a_search_does_not_stop_the_others(translator):
    rng = random.Random(8)
    good, [best, *_] = some_search(translator, rng, decode=replace(BEAM, max_length=5))
    words = replace(good.rules, prefix=(), required=[[[6, 7, 8], [9, 10, 11]]], openings=[[(), ()]])
    bad = replace(good, rules=words)
    engine = Engine(translator, pages=60, memory_pages=30, page_size=PAGE)
    wrong, right = engine.submit(bad), engine.submit(good)
    found = {}
    while engine.busy:
        found |= {one.number: one for one in engine.step() if one.finished}
    assert "need 6 tokens, but the limit is 5" in str(found[wrong].error)
    assert_same(found[right].answer, best)
    assert_nothing_lost(engine)


def test_a_search_that_could_never_fit_is_refused(translator):
    wide = replace(BEAM, best=1, beam=BeamConfig(width=5), max_length=8)
    request, _ = some_search(translator, random.Random(9), decode=wide)
    for pages, rows in ((9, 64), (60, 4)):
        engine = Engine(translator, pages=pages, memory_pages=9, page_size=PAGE, rows=rows)
        with pytest.raises(GlassformerError, match="40 tokens of memory in 5 rows"):
            engine.submit(request)


def test_one_owner_of_many_searches_leaves_rows_to_others(translator):
    rng, config = random.Random(8), replace(BEAM, max_length=9, min_length=8)
    engine = Engine(translator, pages=60, memory_pages=30, page_size=PAGE, rows=9)
    many = [some_search(translator, rng, decode=config) for _ in range(6)]
    search, best = some_search(translator, rng, decode=replace(BEAM, max_length=3))
    expected = {engine.submit(one, "many"): answers for one, answers in many}
    for _ in range(2):
        engine.step()
    number, found = engine.submit(search, "one"), {}
    for _ in range(4):
        found |= {one.number: one for one in engine.step() if one.finished}
    assert found.keys() == {number}
    while engine.busy:
        found |= {one.number: one for one in engine.step() if one.finished}
    for one, answers in {**expected, number: best}.items():
        for answer, other in zip([found[one].answer, *found[one].others], answers, strict=True):
            assert_same(answer, other)
    assert_nothing_lost(engine)
