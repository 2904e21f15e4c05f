"""Fused steps: a model that will not change any more says the same in fewer kernels."""

import gc

import pytest
import torch
import torch.nn.functional as F
from small_models import END, language_model, prompts
from torch import nn

from glassformer.config import AttentionConfig, FeedForwardConfig, NormConfig, PositionConfig
from glassformer.config.decoding import DecodeConfig
from glassformer.core.caches import Ancestry
from glassformer.core.cuda_graphs import CapturedStep
from glassformer.core.feedforward import gelu_tanh, relu_squared
from glassformer.core.gelu import gelu
from glassformer.core.layout import Layout
from glassformer.core.norms import LayerNorm, RMSNorm
from glassformer.core.positions.rotary import Rotary
from glassformer.core.steps import sliced
from glassformer.core.steps.attention import Rotation, StepAttention
from glassformer.core.steps.linear import StepLinear
from glassformer.decode import Request, decode
from glassformer.models.incremental import BranchingScorer, continuing, fused
from glassformer.models.incremental.fused import FusedScorer
from glassformer.models.packing import for_inference

LLAMA = {"norm": NormConfig("rms"), "feedforward": FeedForwardConfig(kind="swiglu", bias=False)}
MODELS = {
    "llama": LLAMA,
    "gpt-2": {"position": PositionConfig("learned"), "attention": AttentionConfig(heads=6)},
    "parallel": {
        "parallel": True,
        "attention": AttentionConfig(heads=3, bias=("q", "out")),
        "position": PositionConfig("rotary", fraction=0.5),
        "feedforward": FeedForwardConfig(kind="relu2"),
    },
    "sinusoidal": {"position": "sinusoidal", "feedforward": FeedForwardConfig(kind="geglu-tanh")},
    "no positions": {"position": "none", "norm": NormConfig("layer", bias=False)},
}
UNUSUAL = {
    "window": {"attention": AttentionConfig(heads=6, window=3)},
    "softcap": {"attention": AttentionConfig(heads=6, softcap=3.0)},
    "norms of queries": {"attention": AttentionConfig(heads=6, qk_norm=True)},
    "post": {"order": "post"},
    "alibi": {"position": "alibi"},
    "convolution": {"feedforward": FeedForwardConfig(kind="convolution")},
}
METHODS = {
    "greedy": DecodeConfig(max_length=7),
    "sample": DecodeConfig(method="sample", best=2, max_length=7),
    "beam": DecodeConfig(method="beam", best=3, max_length=7),
}
LENGTHS = {"greedy": (4, 4, 4), "sample": (5, 2, 7), "beam": (1, 3, 1)}  # of prompts
ASK = Request(end=END, seeds=[3, 1, 4], limits=[5, 7, 6])


def unevenly(model):
    """With norms and biases that are not those of the start."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight += 0.3 * torch.randn_like(weight)
    return model


def assert_same(ours, theirs):
    assert [[h.tokens for h in row] for row in ours] == [[h.tokens for h in row] for row in theirs]
    for mine, yours in zip(ours, theirs, strict=True):
        for a, b in zip(mine, yours, strict=True):
            torch.testing.assert_close(a.token_scores, b.token_scores, atol=1e-3, rtol=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MODELS)
def test_fused_steps_say_what_the_model_says(name, method):
    model = unevenly(language_model(**MODELS[name]))
    texts = prompts(LENGTHS[method])
    scorer = continuing(for_inference(model), texts)
    assert isinstance(scorer, FusedScorer)
    expected = decode(continuing(model, texts), ASK, METHODS[method])
    assert_same(decode(scorer, ASK, METHODS[method]), expected)


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="needs MKL")
@pytest.mark.parametrize("size", [4, 5], ids=["whole slices", "part of a slice"])
@pytest.mark.parametrize("name", MODELS)
def test_a_single_text_is_continued_by_slices_of_the_weights(name, size, monkeypatch):
    monkeypatch.setattr(sliced, "SLICE", size)
    model = unevenly(language_model(**MODELS[name]))
    fast, texts, config = for_inference(model), prompts((4,)), METHODS["greedy"]
    assert fused.fused_model(fast).head.sliced is not None
    expected = decode(continuing(model, texts), Request(end=-1), config)
    assert_same(decode(continuing(fast, texts), Request(end=-1), config), expected)


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="needs MKL")
@pytest.mark.parametrize("outs", [128, 131], ids=["whole slices", "part of a slice"])
@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_slices_of_a_weight_are_the_weight(outs, bias):
    layer, x, y = nn.Linear(24, outs, bias=bias), torch.randn(1, 24), torch.randn(1, outs)
    step = StepLinear.of([layer], torch.float32)
    assert step.sliced is not None
    torch.testing.assert_close(step.weight, layer.weight.data)
    torch.testing.assert_close(step.reference(x), layer(x))
    expected = y + layer(x)
    step.add_to(y, x)
    torch.testing.assert_close(y, expected)
    step.write(y, x)
    torch.testing.assert_close(y, layer(x))


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_model_takes_the_general_steps(name):
    model = for_inference(language_model(**UNUSUAL[name]))
    assert isinstance(continuing(model, prompts()), BranchingScorer)


def test_a_model_that_may_change_takes_the_general_steps():
    assert isinstance(continuing(language_model(**LLAMA), prompts()), BranchingScorer)


def test_scores_stay_within_the_softcap():
    model = language_model(**LLAMA)
    model.tokens.softcap = 0.5
    scorer = continuing(for_inference(model), prompts())
    with torch.no_grad():
        scores, _ = scorer.step(scorer.first[:, None], scorer.begin(1, 3))
    assert scores.abs().max() <= 0.5


@pytest.mark.parametrize("method", METHODS)
def test_slots_that_are_used_again_hold_nothing_of_the_text_before(method, monkeypatch):
    """As on a GPU, where a graph keeps their addresses; here it is a call."""

    class Called(CapturedStep):
        def __call__(self, step, x):
            return step(x)

    def noted(*sizes, **options):
        made.append(Ancestry(*sizes, **options))
        return made[-1]

    monkeypatch.setattr(fused, "graph_on", lambda device, fixed: Called())
    monkeypatch.setattr(fused, "Ancestry", noted)
    model, made = language_model(**LLAMA), []
    fast, config = for_inference(model), METHODS[method]
    for _ in range(3):
        texts = prompts(LENGTHS[method])
        expected = decode(continuing(model, texts), Request(end=-1), config)
        assert_same(decode(continuing(fast, texts), Request(end=-1), config), expected)
    assert len(made) == 1


# On a GPU


@pytest.mark.cuda
@pytest.mark.usefixtures("without_shape_hook")
@pytest.mark.parametrize("name", MODELS)
def test_a_gpu_says_what_a_cpu_says_again_and_again(name):
    model, texts = unevenly(language_model(**MODELS[name])), prompts()
    for config in METHODS.values():
        expected = decode(continuing(model.cpu(), texts), ASK, config)
        fast = for_inference(model.cuda())
        for _ in range(3):
            assert_same(decode(continuing(fast, texts), ASK, config), expected)
            gc.collect()


@pytest.mark.cuda
@pytest.mark.usefixtures("without_shape_hook")
def test_the_graph_of_a_step_is_kept_for_the_next_decoding(monkeypatch):
    graph, captured = torch.cuda.CUDAGraph, []
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: captured.append(graph()) or captured[-1])
    fast, config = for_inference(language_model(**LLAMA).cuda()), METHODS["greedy"]
    counts = []
    for length in (4, 4, 7):  # all fit the same slots
        decode(continuing(fast, prompts((length,) * 3)), Request(end=-1), config)
        counts.append(len(captured))
    assert counts == [2, 3, 4]  # a step once, the choice every time


@pytest.mark.cuda
@pytest.mark.parametrize("rows", [1, 5, 33])
@pytest.mark.parametrize("norm", [None, RMSNorm(136), LayerNorm(136)], ids=["none", "rms", "layer"])
def test_the_kernel_of_a_linear_layer_is_the_layer(rows, norm):
    with torch.no_grad():
        for weight in [] if norm is None else norm.parameters():
            weight.normal_()
        x, residual = torch.randn(rows, 136) + 0.5, torch.randn(rows, 70)
        for activation in (None, F.relu, gelu, gelu_tanh, relu_squared, F.silu):
            for parts in (1,) if activation is None else (1, 2):
                linears = [nn.Linear(136, 70, bias=parts == 2).cuda() for _ in range(parts)]
                norm = None if norm is None else norm.cuda()
                layer = StepLinear.of(linears, torch.float32, norm=norm, activation=activation)
                found = layer(x.cuda(), residual.cuda())
                expected = layer.reference(x.cuda(), residual.cuda())
                torch.testing.assert_close(found, expected, atol=2e-3, rtol=2e-3)


@pytest.mark.cuda
@pytest.mark.parametrize("rows", [1, 17, 64, 200])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("norm", [None, RMSNorm(768), LayerNorm(768)], ids=["none", "rms", "layer"])
@torch.no_grad()
def test_linear_layers_one_after_another_give_the_same_bits_every_time(norm, parts, rows):
    """Kernels that overlap, or products that run on while tiles are loaded, may race."""
    linears = [nn.Linear(768, 2048, bias=False).cuda() for _ in range(parts)]
    norm, activation = None if norm is None else norm.cuda(), None if parts == 1 else F.silu
    widen = StepLinear.of(linears, torch.bfloat16, norm=norm, activation=activation)
    narrow = StepLinear.of([nn.Linear(2048, 768).cuda()], torch.bfloat16)
    x = torch.randn(rows, 768, device="cuda", dtype=torch.bfloat16)
    first = narrow(widen(x), x)
    expected = narrow.reference(widen.reference(x), x)
    torch.testing.assert_close(first, expected, atol=5e-2, rtol=3e-2)
    found = [narrow(widen(x), x) for _ in range(300)]
    assert all(torch.equal(one, first) for one in found)


@pytest.mark.cuda
@pytest.mark.parametrize("rows", [3, 100])
@torch.no_grad()
def test_scores_in_half_precision_are_not_rounded_to_it(rows):
    weight = torch.randn(211, 64, device="cuda").bfloat16()
    head = StepLinear.of_weight(weight, torch.bfloat16, out=torch.float32)
    x = torch.randn(rows, 64, device="cuda").bfloat16()
    torch.testing.assert_close(head(x), x.float() @ weight.float().T, atol=1e-4, rtol=1e-4)


@pytest.mark.cuda
@pytest.mark.parametrize("branches", [1, 3])
@pytest.mark.parametrize("lengths", [(9, 9, 9), (4, 9, 6)], ids=["even", "ragged"])
@torch.no_grad()
def test_the_kernel_of_attention_is_attention(branches, lengths):
    device, heads, groups, width = torch.device("cuda"), 6, 2, 24
    even = Layout.full(3, 9, device)
    prompt = even if len({*lengths}) == 1 else Layout.padded(lengths, device=device)
    two = [
        Ancestry(3, branches, 200, prompt=prompt, reach=256, fixed=fixed, device=device)
        for fixed in (True, False)
    ]
    rotation = Rotation.of(Rotary(heads * width, heads, 256), 256, device)
    layer = StepAttention(heads, groups, width, 0.2)
    caches = [torch.randn(2, 3, groups, two[0].slots, width, device=device)]
    caches.append(caches[0].clone())
    for _ in range(150):
        qkv = torch.randn(3 * branches, (heads + 2 * groups) * width, device=device)
        found = layer(qkv, *caches[0], two[0], rotation)
        expected = layer.reference(qkv, *caches[1], two[1], rotation.at(two[1].lengths))
        torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)
        parents = torch.randint(branches, (3, branches), device=device)
        for ancestry in two:
            ancestry.count() if ancestry.even else ancestry.advance()
            ancestry.branch(parents)
    torch.testing.assert_close(*caches, atol=1e-3, rtol=1e-3)


@pytest.mark.cuda
@pytest.mark.parametrize("size", [13, 1024, 5000, 70000])
@torch.no_grad()
def test_the_kernel_of_greedy_decoding_finds_the_likeliest(size):
    from glassformer.decode.greedy_kernel import choose

    scores = 3 * torch.randn(3, 2, size, device="cuda")
    scores[2, 1, 5] = scores[2, 1, 11] = 50.0  # the first of equals
    allowed = scores.clone()
    allowed[0, 0, scores[0, 0].argmax()] = -torch.inf
    allowed[1, 1] = -torch.inf
    tokens, path = torch.full((3, 2), 9).cuda(), torch.full((3, 2, 5), -7).cuda()
    values, step = torch.zeros(3, 2, 5).cuda(), torch.tensor([3]).cuda()
    choose(scores, allowed, tokens, path, values, step)
    best, token = allowed.max(-1)
    stuck = best == -torch.inf
    assert torch.equal(path[..., 3], token.masked_fill(stuck, -1))
    assert torch.equal(tokens[~stuck], token[~stuck])
    assert (path[..., [0, 1, 2, 4]] == -7).all()
    expected = scores.log_softmax(-1).gather(-1, token[..., None])[..., 0]
    torch.testing.assert_close(values[..., 3][~stuck], expected[~stuck], atol=1e-4, rtol=1e-4)
    choose(scores * torch.nan, allowed, tokens, path, values, step)
    assert values[..., 3].isnan().all()
