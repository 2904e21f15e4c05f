"""Listening: a stream is scored chunk by chunk as the whole recording is at once."""

import pytest
import torch
from torch import nn

from glassformer.config import ModelConfig
from glassformer.config.layers import POSITION_NAMES
from glassformer.config.values import build
from glassformer.core.caches import ChunkCache, GrowingCache
from glassformer.core.layout import Layout
from glassformer.core.masks import chunks, window
from glassformer.core.positions.relative import distances
from glassformer.models.blocks import BLOCKS
from glassformer.models.build import build_transcriber
from glassformer.models.incremental.listening import Listener

BINS, VOCABULARY = 7, 11
POSITIONS = [name for name in POSITION_NAMES if name != "rotary"]


def model_of(mask, frontend="subsampling", factor=4, **encoder):
    stack = {"dim": 12, "depth": 2, "dropout": 0.0, "attention": {"heads": 3}}
    stack["convolution"] = {"width": 5, "norm": "batch"}
    values = {
        "frontend": {"kind": frontend, "bins": BINS, "factor": factor, "hidden": 5},
        "encoder": stack | encoder,
    }
    model = build_transcriber(build(ModelConfig, values), vocabulary=VOCABULARY).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)  # so that gates and positions matter
    model.mask = mask
    return model


def heard(model, frames, sizes):
    """The scores of a stream whose frames arrive in such pieces."""
    listener, found = Listener(model, model.mask), []
    for piece in frames.split(sizes):
        found += listener.hear(piece)
    return torch.cat([*found, *listener.hear(frames[:0], last=True)])


@torch.no_grad()
def whole(model, frames):
    layout = Layout.full(1, len(frames))
    return model(frames[None], source=layout).frames[0].log_softmax(-1)


def check(model, length=59, sizes=13):
    frames = torch.randn(length, BINS)
    torch.testing.assert_close(
        heard(model, frames, sizes), whole(model, frames), atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("left", [0, 2])
@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_reads_a_stream_as_it_reads_the_whole(block, left):
    check(model_of(chunks(3, left), block=block))


@pytest.mark.parametrize("position", POSITIONS)
def test_every_position_scheme_does(position):
    check(model_of(chunks(3, 1), position=position))


@pytest.mark.parametrize("factor", [2, 4, 8])
@pytest.mark.parametrize("frontend", ["subsampling", "conv1d", "resnet"])
def test_a_frontend_hears_what_it_needs_on_both_sides(frontend, factor):
    check(model_of(chunks(2, 1), frontend, factor))


@pytest.mark.parametrize("length", [1, 4, 12, 13, 24, 27])
def test_a_stream_may_end_anywhere(length):
    for sizes in (1, 12, 100):
        check(model_of(chunks(3, 1), block="conformer"), length, sizes)
    check(model_of(chunks(3, 1), "resnet"), length)


def test_a_chunk_is_scored_as_soon_as_it_is_there_and_later_sound_does_not_change_it():
    model, frames = model_of(chunks(3, 1), "resnet", block="e-branchformer"), torch.randn(64, BINS)
    listener = Listener(model, model.mask)
    assert listener.delay == 4 * (3 + 2)
    assert [len(one) for one in listener.hear(frames[:19])] == []
    assert [len(one) for one in listener.hear(frames[19:20])] == [3]
    changed = torch.cat([frames[:20], torch.randn(44, BINS)])
    torch.testing.assert_close(whole(model, frames)[:3], whole(model, changed)[:3])


def test_a_convolution_looks_ahead_to_the_end_of_its_chunk_only():
    block = "branchformer"
    model, frames = model_of(chunks(4, 9), block=block), torch.randn(64, BINS)
    before = whole(model, frames)
    frames[40:] = 0  # from the tenth vector on, in the middle of the third chunk
    same = (before == whole(model, frames)).all(-1)
    assert same.tolist() == [True] * 8 + [False] * 8


def test_memory_does_not_grow_with_the_stream():
    model = model_of(chunks(3, 2), block="conformer", position="transformer-xl")
    listener, sizes = Listener(model, model.mask), set()
    for _ in range(40):
        [_] = listener.hear(torch.randn(12, BINS))
        held = [cache._k for cache in listener.caches]
        inputs = [x for cache in listener.caches for x in cache.inputs.values()]
        sizes.add(sum(x.numel() for x in [*held, *inputs, listener.frames]))
    assert len(sizes) == 2  # while the context fills up, and after that


def test_distances_are_those_of_a_stream_s_context_however_far_it_is():
    cache = ChunkCache(chunks(3, 2))
    for _ in range(9):
        queries = cache.place(Layout.full(1, 3))
        *_, keys = cache.append(torch.randn(1, 1, 3, 4), torch.randn(1, 1, 3, 5), queries)
    assert queries.positions.tolist() == [[24, 25, 26]]
    assert keys.positions.tolist() == [list(range(18, 27))]
    assert distances(queries, keys).tolist() == list(range(-8, 3))


def test_without_a_mask_of_chunks_there_is_no_stream():
    for model in (model_of(window(9)), model_of(chunks(3, 1), kind="lstm")):
        with pytest.raises(ValueError, match="cannot read a stream"):
            Listener(model, model.mask)


def test_a_block_with_convolutions_takes_a_cache_of_chunks_only():
    model, x = model_of(chunks(3, 1), block="conformer"), torch.randn(1, 3, 12)
    for mask, cache in ((chunks(3, 1), GrowingCache()), (window(9), ChunkCache(chunks(3, 1)))):
        with pytest.raises(ValueError, match="pass the whole sequence, or chunks"):
            model.encoder(x, layout=Layout.full(1, 3), mask=mask, caches=[cache] * 2)
