"""On a GPU: the step is replayed as a graph, and says what it says on a CPU."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from small_models import (
    END,
    FIRST,
    LINEAR,
    V,
    baseline_decoder,
    encoder_decoder,
    language_model,
    prompts,
    sources,
)

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.core import cuda_graphs
from glassformer.core.positions import POSITIONS
from glassformer.decode import Request, decode, noise
from glassformer.models.baselines import BASELINE_DECODERS
from glassformer.models.incremental import (
    BranchingScorer,
    StateScorer,
    continuing,
    translating,
)

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("without_shape_hook")]

ASK = Request(end=END, seeds=[3, 1, 4], limits=[5, 9, 14])
EVERY = [
    DecodeConfig(max_length=14),
    DecodeConfig(method="sample", best=2, max_length=14),
    DecodeConfig(method="beam", best=3, max_length=14),
    DecodeConfig(method="beam", best=2, max_length=14, beam=BeamConfig(groups=2)),
]
each_method = pytest.mark.parametrize(
    "config", EVERY, ids=["greedy", "sample", "beam", "diverse beam"]
)


def assert_same(ours, theirs):
    for mine, yours in zip(ours, theirs, strict=True):
        assert [h.tokens for h in mine] == [h.tokens for h in yours]
        for a, b in zip(mine, yours, strict=True):
            torch.testing.assert_close(a.token_scores, b.token_scores, atol=1e-3, rtol=0)


@each_method
def test_a_gpu_translates_as_a_cpu_does(config):
    model, (samples, layout) = encoder_decoder(), sources()
    on_cpu = decode(translating(model, samples, layout, first=FIRST), ASK, config)
    scorer = translating(model.cuda(), samples.cuda(), layout.to("cuda"), first=FIRST)
    assert scorer.capture
    assert_same(decode(scorer, ASK, config), on_cpu)


@each_method
def test_a_gpu_continues_as_a_cpu_does(config):
    model, texts = language_model(), prompts()
    on_cpu = decode(continuing(model, texts), ASK, config)
    assert_same(decode(continuing(model.cuda(), texts), ASK, config), on_cpu)


def replayed_against_eager(scorer, eager, monkeypatch):
    """Walk both ways at random, changing branches at every step and dropping a row on the way."""
    captured = []
    graph = torch.cuda.CUDAGraph
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: captured.append(graph()) or captured[-1])
    states = [one.begin(3, 8) for one in (scorer, eager)]
    tokens = scorer.first[:, None].expand(-1, 3)
    for step in range(8):
        answers = [one.step(tokens, s) for one, s in zip((scorer, eager), states, strict=True)]
        torch.testing.assert_close(answers[0][0], answers[1][0], atol=1e-4, rtol=1e-4)
        parents = torch.randint(3, (len(tokens), 3), device="cuda")
        states = [state.reorder(parents) for _, state in answers]
        tokens = torch.randint(V, tokens.shape, device="cuda")
        if step == 4:
            kept = torch.tensor([2, 0], device="cuda")
            states, tokens = [state.select_rows(kept) for state in states], tokens[kept]
    assert len(captured) == 2  # one for three rows, one for two


@torch.no_grad()
@pytest.mark.parametrize("name", POSITIONS)
def test_a_replayed_step_is_the_step_as_it_is(name, monkeypatch):
    scorer = continuing(language_model(position=name).cuda(), prompts())
    parts = (scorer.decoder, scorer.tokens, scorer.unembed, scorer.first)
    eager = BranchingScorer(*parts, prompt=scorer.prompt, capture=False)
    replayed_against_eager(scorer, eager, monkeypatch)


@torch.no_grad()
@pytest.mark.parametrize(
    "make",
    [
        *(partial(baseline_decoder, kind) for kind in BASELINE_DECODERS),
        partial(encoder_decoder, attention=LINEAR, position="sinusoidal"),
    ],
    ids=[*BASELINE_DECODERS, "linear"],
)
def test_a_replayed_step_of_states_is_the_step_as_it_is(make, monkeypatch):
    samples, layout = sources()
    scorer = translating(make().cuda(), samples.cuda(), layout.to("cuda"), first=FIRST)
    parts = (scorer.score, scorer.decoder, scorer.first)
    eager = StateScorer(*parts, memory=scorer.memory, capture=False)
    replayed_against_eager(scorer, eager, monkeypatch)


@torch.no_grad()
@pytest.mark.parametrize("make", [encoder_decoder, partial(baseline_decoder, "gru")])
@pytest.mark.parametrize("config", EVERY[::2], ids=["greedy", "beam"])
def test_graphs_in_bf16_say_what_steps_say_without_them(make, config, monkeypatch):
    model, (samples, layout) = make().cuda(), sources()
    answers = []
    for captured in (True, False):
        if not captured:
            monkeypatch.setattr(cuda_graphs, "CapturedStep", lambda: None)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scorer = translating(model, samples.cuda(), layout.to("cuda"), first=FIRST)
            answers.append(decode(scorer, ASK, config))
    assert_same(*answers)


@torch.no_grad()
def test_other_threads_may_use_the_gpu_during_a_capture():
    model, (samples, layout) = encoder_decoder().cuda(), sources()
    stop = threading.Event()

    def disturb():
        size = 1
        while not stop.is_set():
            torch.zeros(size << 20, device="cuda").sum().item()
            size = size % 40 + 1
            torch.cuda.empty_cache()

    with ThreadPoolExecutor(1) as threads:
        disturbance = threads.submit(disturb)
        try:
            answers = []
            for _ in range(20):
                scorer = translating(model, samples.cuda(), layout.to("cuda"), first=FIRST)
                answers.append(decode(scorer, ASK, EVERY[2]))
        finally:
            stop.set()
        disturbance.result()
    for answer in answers[1:]:
        assert_same(answer, answers[0])


def test_noise_is_the_same_on_a_gpu():
    seeds, tokens = torch.tensor([5, 2**40, -3]), torch.arange(50_000)
    on_cpu, on_gpu = (
        noise.gumbel(noise.keys(seeds.to(d), 2, 7), tokens.to(d)) for d in ("cpu", "cuda")
    )
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=1e-5, rtol=1e-5)
