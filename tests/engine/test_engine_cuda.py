"""On a GPU: the kernel reads pages as the reference does, and graphs give the same answers."""

import random

import pytest
import torch
from test_engine import (
    PAGE,
    SETTINGS,
    V,
    alone,
    assert_nothing_lost,
    assert_same,
    bold,
    served,
    some_request,
)

from glassformer.config import AttentionConfig, ModelConfig, PositionConfig, StackConfig
from glassformer.config.decoding import DecodeConfig
from glassformer.core.caches import PagePool
from glassformer.core.positions.rotary import rotated as by_functions
from glassformer.core.steps.paged_attention import attention_on, has_kernel, reference
from glassformer.engine import Engine, GenerationRequest, borrowed_engine
from glassformer.engine.paged_steps import PagedSteps
from glassformer.engine.steps import GatheredSteps
from glassformer.models.build import build_language_model
from glassformer.models.packing import for_inference

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("without_shape_hook")]

SHAPES = [  # heads, those of keys, their widths, tokens in a page
    (4, 4, 64, 64, 16),
    (6, 2, 24, 20, 4),
    (12, 12, 128, 128, 32),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("window", "softcap"), [(None, None), (7, None), (100, 2.0)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rotated", [0, 0.5, 1])
def test_the_kernel_gives_what_gathering_gives(rotated, shape, window, softcap, dtype):
    heads, groups, width, value_width, size = shape
    positions = torch.tensor([0, 1, 3, 63, 64, 200, 517], device="cuda")
    rows, most = len(positions), 520 // size + 1

    def some(*sizes):
        return torch.randn(*sizes, device="cuda", dtype=dtype)

    table = torch.randperm(rows * most, device="cuda").view(rows, most).int()
    pages = some(rows * most, size, groups, width), some(rows * most, size, groups, value_width)
    new = some(rows, heads, width), some(rows, groups, width), some(rows, groups, value_width)
    turns = None
    if rotated:
        half = int(width * rotated) // 2
        angle = torch.rand(rows, half, device="cuda")
        turns = angle.cos(), angle.sin()
    options = {"scale": width**-0.5, "softcap": softcap, "window": window, "turns": turns}
    ours, theirs = [page.clone() for page in pages], [page.clone() for page in pages]
    assert has_kernel(table.device)
    found = attention_on(table.device)(*new, *ours, table, positions, **options)
    expected = reference(*new, *theirs, table, positions, **options)
    torch.testing.assert_close(
        found, expected, atol=1e-5 if dtype == torch.float32 else 2e-2, rtol=0
    )
    torch.testing.assert_close(ours, theirs, atol=1e-6 if dtype == torch.float32 else 2e-2, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("before", [0, 5], ids=["first tokens", "more tokens"])
@pytest.mark.parametrize("rotated", [0, 0.5, 1])
def test_prompts_are_turned_and_kept_as_by_functions_of_pytorch(rotated, before, dtype):
    from glassformer.core.steps.keeping_kernel import turn_and_keep

    heads, groups, width, lengths = 6, 2, 24, [7, 1, 40]
    given = torch.randn(sum(lengths), heads + 2 * groups, width, device="cuda", dtype=dtype)
    turns = None
    if rotated:
        angle = torch.rand(len(given), int(width * rotated) // 2, device="cuda")
        turns = angle.cos(), angle.sin()
    qk, v = given.split([heads + groups, groups], dim=1)
    expected, kept = by_functions(qk, turns), []
    for by_kernel in (True, False):
        pool = PagePool(
            pages=40,
            page_size=4,
            layers=1,
            heads=groups,
            key_width=width,
            value_width=width,
            device="cuda",
            dtype=dtype,
        )
        rows = [pool.open() for _ in lengths]
        if before:
            pool.extend(rows, [before] * len(rows), packed=True)
        layout, (cache,) = pool.extend(rows, lengths, packed=True)
        if by_kernel:
            found = turn_and_keep(given, cache, layout, turns)
            kept.append(cache.with_past(found[:, heads:], v, layout)[:2])
        else:
            kept.append(cache.append(expected[:, heads:], v, layout)[:2])
    near = 1e-6 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(found, expected, atol=near, rtol=near)
    torch.testing.assert_close(*kept, atol=near, rtol=near)


def test_a_likeliest_token_and_its_score_are_those_of_softmax():
    from glassformer.decode.greedy_kernel import likeliest

    scores = torch.randn(5, 5000, device="cuda")
    allowed = scores.clone()
    allowed[1, scores[1].argmax()] = -torch.inf
    allowed[2] = -torch.inf
    tokens, found = likeliest(scores, allowed)
    expected = allowed.argmax(1)
    expected[2] = -1
    assert tokens.tolist() == expected.tolist()
    log_probs = scores.log_softmax(1).gather(1, expected.clamp(min=0)[:, None])[:, 0]
    others = [0, 1, 3, 4]
    torch.testing.assert_close(found[others], log_probs[others])


def lm(position="rotary", **attention):
    torch.manual_seed(0)
    stack = StackConfig(
        dim=64,
        depth=2,
        dropout=0.0,
        max_length=64,
        position=PositionConfig(position),
        attention=AttentionConfig(heads=4, **attention),
    )
    model = build_language_model(ModelConfig(decoder=stack), vocabulary=V)
    return bold(model).float().cuda()


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("pages", [20, 400], ids=["few", "many"])
@pytest.mark.parametrize("position", ["rotary", "learned", "alibi"])
def test_answers_in_company_are_those_alone(position, pages, fused):
    model, rng = lm(position, kv_heads=2), random.Random(pages)
    used = for_inference(model) if fused else model
    engine = Engine(used, pages=pages, page_size=PAGE, rows=20, chunk=64)
    assert isinstance(engine.steps, GatheredSteps if position == "alibi" else PagedSteps)
    found = list(served(engine, [some_request(rng) for _ in range(60)], rng, cancels=True))
    assert len(found) > 40
    for request, answer in found:
        assert_same(answer, alone(model, request), atol=1e-3)
    assert_nothing_lost(engine)


def test_a_step_starts_before_the_tokens_of_the_last_are_known():
    engine = Engine(lm(), pages=100, page_size=PAGE)
    engine.submit(GenerationRequest(prompt=(5, 6), decode=DecodeConfig(max_length=3)))
    assert [len(engine.step()) for _ in range(4)] == [0, 1, 1, 1]
    assert not engine.busy


@pytest.mark.parametrize("fused", [False, True])
def test_a_graph_outlives_the_autocast_around_it(fused):
    model, rng = lm(), random.Random(1)
    model = for_inference(model) if fused else model
    requests = [some_request(rng, decode=SETTINGS[0]) for _ in range(5)]
    with torch.autocast("cuda", torch.bfloat16):
        engine = Engine(model, pages=400, page_size=PAGE)
    answers = []
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16):
            answers.append([found.tokens for found in engine.answers(requests)])
        engine.forget()
        torch.full((1 << 24,), torch.nan, device="cuda")  # over what was freed
    assert answers[0] == answers[1] == answers[2]


def test_an_engine_is_kept_for_the_next_who_needs_one():
    model = lm()
    request = GenerationRequest(prompt=(5, 6), decode=DecodeConfig(max_length=3))
    with borrowed_engine(model, tokens=64, rows=2) as first:
        (found,) = first.answers([request])
        with borrowed_engine(model, tokens=64, rows=2) as other:
            assert other is not first
    with borrowed_engine(model, tokens=32, rows=2) as again:
        assert again is first
        assert again.scheduler.pool.free_pages == again.scheduler.pool.pages
        assert next(again.answers([request])).tokens == found.tokens
    with borrowed_engine(model, tokens=128, rows=2) as larger:
        assert larger is not first
