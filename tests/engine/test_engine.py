"""Many requests at once get the answers that each gets alone, and no page is lost."""

import random
from dataclasses import replace
from functools import partial

import pytest
import torch

from glassformer.config import AttentionConfig, ModelConfig, StackConfig
from glassformer.config.decoding import DecodeConfig, SampleConfig
from glassformer.core.layout import Layout
from glassformer.decode import Request, decode
from glassformer.engine import Engine, GenerationRequest, Source, rows
from glassformer.engine.paged_steps import PagedSteps
from glassformer.engine.prefixes import Prefixes
from glassformer.engine.rows import RowSteps
from glassformer.engine.steps import GatheredSteps
from glassformer.models.build import build_language_model, build_transformer
from glassformer.models.incremental import continuing, translating
from glassformer.models.incremental.even import EvenSteps
from glassformer.models.packing import for_inference

V, END, PAGE = 23, 2, 4
STACK = {"dim": 16, "depth": 2, "dropout": 0.0}


def bold(model):
    """In fp64, with weights so large that what was said changes what comes next."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                torch.nn.init.normal_(weight, std=1.5 * weight[0].numel() ** -0.5)
    return model.double().eval()


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    stack = StackConfig(attention=AttentionConfig(heads=4, kv_heads=2), **STACK)
    return bold(build_language_model(ModelConfig(decoder=stack), vocabulary=V))


@pytest.fixture(scope="module")
def translator():
    torch.manual_seed(1)
    stack = StackConfig(attention=AttentionConfig(heads=2), **STACK)
    return bold(build_transformer(ModelConfig(encoder=stack, decoder=stack), vocabulary=V))


def as_text(tokens):
    return "".join(chr(97 + token) for token in tokens)


SETTINGS = [
    DecodeConfig(),
    DecodeConfig(method="sample", alternatives=3),
    DecodeConfig(method="sample", sample=SampleConfig(temperature=0.7, top_k=9, top_p=0.9)),
    DecodeConfig(method="sample", repetition=1.4, sample=SampleConfig(temperature=0.7)),
    DecodeConfig(repetition=1.5, no_repeat=2, min_length=3),
    DecodeConfig(method="sample", stop=("ab", "k")),
]


def some_request(rng, **changed):
    """A random request, whose prompt may begin like others."""
    common = [5, 6, 7, 8, 9, 10, 11, 12, 13][: rng.choice([0, 0, 4, 9])]
    prompt = [*common, *(rng.randrange(3, V) for _ in range(rng.randint(1, 9)))]
    config = replace(rng.choice(SETTINGS), max_length=rng.randint(3, 12))
    given = {"decode": config, "end": END, "seed": rng.randrange(1 << 40)}
    given["forbidden"] = rng.choice([(), ((4,), (7, 9))])
    return GenerationRequest(prompt=tuple(prompt), detokenize=as_text, **given | changed)


def alone(model, request):
    """What the simple loop answers."""
    whole = Request(
        end=request.end,
        prompts=[request.prompt],
        forbidden=request.forbidden,
        seeds=[request.seed],
        detokenize=request.detokenize,
    )
    return decode(continuing(model, [request.prompt]), whole, request.decode)[0][0]


def assert_same(found, expected, atol=1e-5):
    assert (found.tokens, found.reason) == (expected.tokens, expected.reason)
    assert found.token_scores == pytest.approx(expected.token_scores, abs=atol)
    assert found.score == pytest.approx(expected.score, abs=atol)
    assert [[token for token, _ in some] for some in found.alternatives] == [
        [token for token, _ in some] for some in expected.alternatives
    ]


def assert_nothing_lost(engine):
    """Once everything is dropped, every page is free."""
    scheduler = engine.scheduler
    assert not engine.busy
    assert not scheduler.coming.root.children
    engine.forget()
    assert scheduler.pool.free_pages == scheduler.pool.pages
    assert not scheduler.held.root.children
    if engine.decoder.sources is not None:
        assert engine.decoder.sources.free_pages == engine.decoder.sources.pages


def served(engine, requests, rng, *, cancels):
    """Requests that arrive and are cancelled at random; the answers of the others."""
    left, answers, open_now = list(requests), {}, {}
    while left or engine.busy:
        for _ in range(rng.choice([0, 0, 1, 2, 5])):
            if left:
                request = left.pop()
                open_now[engine.submit(request)] = request
        for progress in engine.step():
            if progress.finished:
                answers[progress.number] = (open_now.pop(progress.number), progress.answer)
        if cancels and open_now and rng.random() < 0.04:
            number = rng.choice(list(open_now))
            engine.cancel(number)
            del open_now[number]
    return answers.values()


STEPS = {
    "rows": RowSteps,
    "gathered": partial(GatheredSteps, exact=False),
    "paged": partial(PagedSteps, rows=6),
    "fused rows": RowSteps,
    "fused paged": partial(PagedSteps, rows=6),
}


def company(model, requests, seed, pages, *, steps, every=1):
    rng, fused = random.Random(seed), "fused" in steps
    used = for_inference(model) if fused else model
    engine = Engine(used, pages=pages, page_size=PAGE, rows=6, chunk=rng.choice([4, 8, 32]))
    engine.steps = STEPS[steps](engine.decoder)
    assert (engine.decoder.fused is not None) == fused
    found = list(served(engine, requests, rng, cancels=True))
    assert len(found) > len(requests) / 2
    for request, answer in found[::every]:
        assert_same(answer, alone(model, request))
    assert_nothing_lost(engine)


CASES = [*((9, steps) for steps in STEPS), (200, "fused rows"), (200, "paged")]


@pytest.mark.parametrize(("pages", "steps"), CASES)
def test_answers_in_company_are_those_alone(model, pages, steps):
    rng = random.Random(pages)
    company(model, [some_request(rng) for _ in range(12)], pages, pages, steps=steps)


def test_rows_at_one_place_take_the_steps_of_the_loop(model, monkeypatch):
    made = []

    def noted(layers, caches, rotation):
        made.append(len(caches[0][0]))
        return EvenSteps(layers, caches, rotation)

    monkeypatch.setattr(rows, "EvenSteps", noted)
    engine = Engine(for_inference(model), pages=200, page_size=PAGE)
    requests = [
        GenerationRequest(prompt=prompt, decode=DecodeConfig(max_length=length))
        for prompt, length in (((5, 9, 8), 3), ((5, 4, 9), 7), ((8, 4, 9), 5), ((6, 5), 5))
    ]
    for some in (requests[:3], requests[2:]):
        for found, one in zip(engine.answers(some), some, strict=True):
            assert_same(found, alone(model, one))
    assert made == [3, 2, 1]  # again when one left; never beside a row that is elsewhere


@pytest.mark.full
@pytest.mark.parametrize(
    ("steps", "count"), [(name, 10_000 if name == "fused rows" else 1000) for name in STEPS]
)
def test_ten_thousand_requests_lose_no_page(model, steps, count):
    rng = random.Random(0)
    requests = [some_request(rng) for _ in range(count)]
    company(model, requests, 0, 40, steps=steps, every=20)


def test_a_step_starts_before_the_tokens_of_the_last_are_known(model):
    engine = Engine(model, pages=100, page_size=PAGE)
    engine.steps = STEPS["paged"](engine.decoder)
    request = GenerationRequest(prompt=(5, 6), decode=DecodeConfig(max_length=3))
    engine.submit(request)
    steps = [engine.step() for _ in range(4)]
    assert [len(step) for step in steps] == [0, 1, 1, 1]
    assert_same(steps[-1][0].answer, alone(model, request))
    engine.submit(replace(request, decode=DecodeConfig(max_length=2, no_repeat=1)))
    assert [len(engine.step()) for _ in range(2)] == [1, 1]  # its rule needs to know them
    assert not engine.busy


def test_a_prefix_that_was_read_is_shared(model):
    engine = Engine(model, pages=100, page_size=PAGE)
    prompt = tuple(range(3, 16))  # three pages and a token
    greedy = DecodeConfig(max_length=3)
    first, second = (GenerationRequest(prompt=(*prompt, last), decode=greedy) for last in (16, 17))
    list(engine.answers([first]))
    used = engine.scheduler.pool.pages - engine.scheduler.pool.free_pages
    number = engine.submit(second)
    engine.step()
    assert engine.scheduler.running[number].sequence in engine.scheduler.held.tokens
    assert engine.scheduler.pool.pages - engine.scheduler.pool.free_pages == used + 1
    list(engine.answers([]))
    assert_same(next(engine.answers([second])), alone(model, second))


def test_requests_that_come_together_share_too(model):
    engine = Engine(model, pages=100, page_size=PAGE)
    prompt = tuple(range(3, 20))
    request = GenerationRequest(prompt=prompt, decode=DecodeConfig(method="sample", max_length=2))
    many = [replace(request, seed=seed) for seed in range(6)]
    for found, one in zip(engine.answers(many), many, strict=True):
        assert_same(found, alone(model, one))
    whole = -(-len(prompt) // PAGE) + 1
    assert engine.scheduler.pool.pages - engine.scheduler.pool.free_pages <= whole + 2 * 5


def test_a_long_prompt_does_not_hold_up_the_others(model):
    engine = Engine(model, pages=100, page_size=PAGE, chunk=8)
    short = engine.submit(GenerationRequest(prompt=(5,), decode=DecodeConfig(max_length=20)))
    engine.step()
    long = engine.submit(GenerationRequest(prompt=(3,) * 50, decode=DecodeConfig(max_length=2)))
    steps = []
    while engine.busy:
        steps.append([progress.number for progress in engine.step()])
    assert all(short in step for step in steps[:19])
    assert [long in step for step in steps].index(True) == 6  # 50 tokens, 8 in a step


@pytest.mark.parametrize("before", [0, 1], ids=["alone", "beside another"])
def test_as_many_tokens_are_due_as_the_next_step_reads(model, before):
    engine, read = Engine(model, pages=100, page_size=PAGE, chunk=8), []
    inner = engine.decoder.read
    engine.decoder.read = lambda some, counts, **how: (
        read.extend(counts) or inner(some, counts, **how)
    )
    for _ in range(before):
        engine.submit(GenerationRequest(prompt=(5,), decode=DecodeConfig(max_length=20)))
        engine.step()
    engine.submit(GenerationRequest(prompt=(3,) * 90, decode=DecodeConfig(max_length=2)))
    read.clear()
    due = engine.due_tokens
    engine.step()
    assert due == sum(read) + before == (64 if not before else 9)


def test_what_ends_early_keeps_only_the_pages_that_it_has_used(model):
    engine = Engine(model, pages=20, page_size=PAGE)
    soon = DecodeConfig(max_length=60, stop=tuple(as_text(range(V))))
    request = GenerationRequest(prompt=(5, 6, 7), decode=soon, detokenize=as_text)
    (found,) = engine.answers([request])
    assert found.reason == "stop"
    assert engine.scheduler.pool.free_pages == 20 - 1


def test_requests_are_taken_as_others_are_answered(model):
    engine, taken = Engine(model, pages=100, page_size=PAGE), []

    def requests():
        for number in range(9):
            taken.append(number)
            yield GenerationRequest(prompt=(5 + number,), decode=DecodeConfig(max_length=2))

    answers, counts = engine.answers(requests(), ahead=3), []
    for _ in range(6):
        next(answers)
        counts.append(len(taken))
    assert counts[0] == 1  # the first is answered before others are read
    assert max(taken - done for done, taken in enumerate(counts)) == 3
    answers.close()
    assert_nothing_lost(engine)  # nobody waits for the rest


def test_what_is_cancelled_leaves_at_once(model):
    engine = Engine(model, pages=6, page_size=PAGE)
    request = GenerationRequest(prompt=(5, 6, 7), decode=DecodeConfig(max_length=20))
    first, second = engine.submit(request), engine.submit(request)
    engine.step()
    assert [*engine.scheduler.running] == [first]  # there is no room for both
    engine.cancel(first)
    assert engine.scheduler.pool.free_pages == 6
    engine.step()
    assert [*engine.scheduler.running] == [second]
    engine.cancel(second)
    engine.cancel(second)
    assert_nothing_lost(engine)


def test_exact_answers_have_the_same_bits_in_any_company(model):
    single = model.float()
    rng = random.Random(3)
    requests = [some_request(rng) for _ in range(6)]

    def bits(pages, seed):
        engine = Engine(single, pages=pages, page_size=PAGE, chunk=8, exact=True)
        found = served(engine, requests, random.Random(seed), cancels=False)
        return dict(found)

    try:
        first = bits(200, 0)
        assert first == bits(12, 1) == bits(40, 2)
    finally:
        model.double()


def test_an_encoder_decoder_keeps_its_sources_in_pages(translator):
    rng = random.Random(5)
    requests, expected = [], []
    for _ in range(9):
        source = torch.tensor([[rng.randrange(3, V) for _ in range(rng.randint(1, 9))]])
        layout = Layout.full(1, source.shape[1])
        config = DecodeConfig(max_length=rng.randint(1, 8))
        requests.append(
            GenerationRequest(
                prompt=(1,),
                end=END,
                decode=config,
                source=Source(
                    source.shape[1], lambda s=source, at=layout: translator.encode(s, at)
                ),
            )
        )
        scorer = translating(translator, source, layout, first=1)
        expected.append(decode(scorer, Request(end=END), config)[0][0])
    engine = Engine(translator, pages=9, memory_pages=7, page_size=PAGE)
    for found, one in zip(engine.answers(requests), expected, strict=True):
        assert_same(found, one)
    assert_nothing_lost(engine)


def test_prefixes_know_who_holds_what():
    prefixes = Prefixes(2)
    prefixes.add(1, [5, 6, 7])
    prefixes.add(2, [5, 6, 8, 9])
    assert prefixes.longest([5, 6, 8, 9, 9]) == (2, 4)
    assert prefixes.longest([5, 6, 7, 7]) == (1, 2)
    assert prefixes.longest([6, 5]) == (None, 0)
    prefixes.remove(1)
    assert prefixes.longest([5, 6]) == (2, 2)
    prefixes.remove(2)
    assert not prefixes.root.children


@pytest.mark.parametrize(
    ("steps", "pages"),  # too few for six of the first, or enough
    [("rows", 20), ("fused rows", 200), ("gathered", 20), ("paged", 20), ("fused paged", 200)],
)
def test_one_owner_of_many_requests_leaves_rows_to_others(model, steps, pages):
    used = for_inference(model) if "fused" in steps else model
    engine = Engine(used, pages=pages, page_size=PAGE, rows=6, chunk=8)
    engine.steps = STEPS[steps](engine.decoder)
    config = DecodeConfig(method="sample", max_length=16)
    many = [GenerationRequest(prompt=(5, 6, 7), decode=config, seed=n) for n in range(8)]
    few = [replace(many[0], seed=n, decode=replace(config, max_length=4)) for n in (90, 91)]
    asked = {engine.submit(one, "many"): one for one in many}
    answers, steps_taken = {}, 0
    for _ in range(3):
        assert not any(one.finished for one in engine.step())
    brief = {engine.submit(one, f"few {one.seed}"): one for one in few}
    while engine.busy:
        steps_taken += 1
        answers |= {one.number: one.answer for one in engine.step() if one.finished}
        if steps_taken == 8:
            assert answers.keys() == brief.keys()
    for number, request in {**asked, **brief}.items():
        assert_same(answers[number], alone(model, request))
    assert_nothing_lost(engine)
