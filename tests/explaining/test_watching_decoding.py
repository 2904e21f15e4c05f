"""Watching while a sequence is continued: the newest queries over all keys that a cache holds."""

import pytest
import torch
from watched_models import (
    TIGHT,
    B,
    G,
    H,
    S,
    T,
    V,
    batch,
    language_model,
    shaken,
    stack,
    translator,
    whole_pass,
)

from glassformer.config import ModelConfig
from glassformer.config.values import build
from glassformer.core.caches import FixedCache, PagePool
from glassformer.core.layout import Layout
from glassformer.core.masks import Chunks
from glassformer.explaining.watching import watching
from glassformer.models.build import build_transcriber
from glassformer.models.incremental import BranchingScorer, continuing, translating
from glassformer.models.incremental.listening import Listener
from glassformer.models.packing import for_inference


def steps_with(kind, model):
    """From a number of new tokens to their layout and caches of this kind."""
    widths = {"heads": G, "key_width": 4, "value_width": 4}
    if kind == "paged":
        pool = PagePool(pages=20, page_size=4, layers=1, **widths)
        rows = [pool.open() for _ in range(B)]
        return lambda count: pool.extend(rows, [count] * B)
    caches = model.decoder.new_caches()
    if kind == "fixed":
        caches = [FixedCache(B, 17, **widths) for _ in caches]
    return lambda count: (Layout.full(B, count), caches)


@torch.no_grad()
@pytest.mark.parametrize("position", ["rotary", "shaw"])
@pytest.mark.parametrize("kind", ["growing", "fixed", "paged"])
def test_a_cached_decode_shows_the_newest_queries_over_all_keys_held(kind, position):
    model, ids = language_model(position={"kind": position}), torch.randint(V, (B, T))
    expected, read = whole_pass(model, ids), []
    steps = steps_with(kind, model)
    with watching(model) as (watched, maps):
        for start, stop in [(0, 3), (3, 4), (4, 7)]:
            layout, caches = steps(stop - start)
            watched(ids[:, start:stop], layout=layout, caches=caches)
            read.append((maps.recordings["decoder.blocks.0.attention"], start, stop))
    if kind == "fixed":
        caches[0].clear()
    for recording, start, stop in read:  # only now, when the caches hold more, or nothing
        found = recording.rows(None, None)
        right = expected["decoder.blocks.0.attention"][:, :, start:stop, :stop]
        torch.testing.assert_close(found, right, **TIGHT)


@torch.no_grad()
def test_branches_of_a_beam_show_what_each_sees_of_its_own_past():
    model, prompts = language_model(), [[3, 1, 4], [1, 5, 9]]
    with watching(for_inference(model)) as (watched, maps):
        scorer = continuing(watched, prompts)
        assert isinstance(scorer, BranchingScorer)
        state = scorer.begin(2, 3)
        first, second = torch.tensor([[4, 2], [9, 6]]), torch.tensor([[7, 8], [2, 0]])
        scorer.step(first, state)
        state.reorder(torch.tensor([[1, 1], [0, 1]]))
        scorer.step(second, state)
    found = maps["decoder.blocks.0.attention"]
    assert found.shape == (2, H, 2, 2 + 2 + 2)  # slots: the prompt, and two branches twice
    alone = whole_pass(model, torch.tensor([[3, 1, 2, 7]]))["decoder.blocks.0.attention"]
    torch.testing.assert_close(found[0, :, 0][:, [0, 1, 3, 4]], alone[0, :, -1], **TIGHT)
    assert not found[0, :, 0][:, [2, 5]].any()


def test_linear_attention_that_continues_from_sums_says_that_it_has_no_weights():
    model = language_model(attention={"kind": "linear"}, position={"kind": "learned"})
    caches, one = model.decoder.new_caches(), Layout.full(B, 1)
    with watching(model) as (watched, maps):
        watched(torch.ones(B, 1, dtype=torch.long), layout=one, caches=caches)
        assert maps["decoder.blocks.0.attention"].eq(1).all()
        watched(torch.ones(B, 1, dtype=torch.long), layout=one, caches=caches)
    for read in (maps.shape, maps.rows):
        with pytest.raises(ValueError, match=r"keeps sums of its keys.*whole sequence"):
            read("decoder.blocks.0.attention")


@torch.no_grad()
def test_the_beam_of_a_translator_shows_what_each_branch_takes_from_the_source():
    model, ((source, _), layouts) = translator(), batch()
    first = torch.tensor([[4, 2], [9, 6], [3, 3]])
    with watching(model) as (watched, maps):
        scorer = translating(watched, source, layouts["source"], first=1)
        scorer.step(first, scorer.begin(2, 3))
    found = maps["decoder.blocks.0.cross_attention"]
    assert found.shape == (B, H, 2, S)
    for branch in range(2):
        with watching(model) as (watched, maps):
            ids = first[:, branch : branch + 1]
            watched(source, ids, source=layouts["source"], target=Layout.full(B, 1))
        right = maps["decoder.blocks.0.cross_attention"][:, :, 0]
        torch.testing.assert_close(found[:, :, branch], right, **TIGHT)


@torch.no_grad()
def test_a_stream_shows_the_newest_chunk_over_the_chunks_that_it_sees():
    frontend = {"kind": "subsampling", "bins": 7, "factor": 4}
    config = build(ModelConfig, {"frontend": frontend, "encoder": stack(block="conformer")})
    model, mask = shaken(build_transcriber(config, vocabulary=V)), Chunks(4, 2)
    sound, name, done = torch.randn(1, 64, 7), "encoder.blocks.0.attention", 0
    with watching(model) as (watched, maps):
        watched(sound, source=Layout.full(1, 64), mask=mask)
        whole = maps[name]
        for scores in Listener(watched, mask).hear(sound[0], last=True):
            found, start = maps[name], done
            done += len(scores)
            right = whole[:, :, start:done, done - found.shape[-1] : done]
            torch.testing.assert_close(found, right, **TIGHT)
    assert done == 16
    assert found.shape[-1] == 3 * 4
