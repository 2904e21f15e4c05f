"""Whole models: one result however a batch travels, honest counts, and settings that all matter."""

from dataclasses import replace

import pytest
import torch
from formula_cost import Batch, forward_flops, parameters
from torch.utils.flop_counter import FlopCounterMode

from glassformer.config import (
    BLOCK_NAMES,
    FRONTEND_NAMES,
    KIND_NAMES,
    POSITION_NAMES,
    AttentionConfig,
    FeedForwardConfig,
    FrontendConfig,
    ModelConfig,
    PositionConfig,
    StackConfig,
)
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import GrowingCache
from glassformer.core.layout import Layout, pack
from glassformer.errors import GlassformerError
from glassformer.models.build import (
    build_classifier,
    build_encoder,
    build_language_model,
    build_masked_model,
    build_transformer,
)
from glassformer.models.pooling import POOLS

STACK = StackConfig(
    dim=24,
    depth=2,
    max_length=23,
    dropout=0.0,
    attention=AttentionConfig(heads=3),
    feedforward=FeedForwardConfig(hidden=38),
)
V, B, T, S, C = 29, 2, 5, 7, 11
SOURCE, TARGET = (7, 3), (5, 2)
READERS, WRITERS = ("attention", "gru", "lstm", "tcn"), ("attention", "gru")


def tokens(*shape):
    return torch.randint(0, V, shape)


def encoder_decoder(**settings):
    return ModelConfig(encoder=STACK, decoder=STACK, **settings)


@pytest.mark.parametrize("reads", READERS)
@pytest.mark.parametrize("writes", WRITERS)
@torch.no_grad()
def test_any_encoder_mixes_with_any_decoder(reads, writes):
    config = ModelConfig(encoder=replace(STACK, kind=reads), decoder=replace(STACK, kind=writes))
    model = build_transformer(config, vocabulary=V).eval()
    source, target, x, y = Layout.padded(SOURCE), Layout.padded(TARGET), tokens(B, S), tokens(B, T)
    flat_x, flat_y = source.as_packed(), target.as_packed()
    padded = pack(model(x, y, source=source, target=target), flat_y)
    packed = model(pack(x, flat_x), pack(y, flat_y), source=flat_x, target=flat_y)
    torch.testing.assert_close(packed, padded, atol=1e-5, rtol=1e-5)
    memory, caches = model.encode(x, source), model.decoder.new_caches()
    steps = [model.decode(y[:, [t]], Layout.full(B, 1), memory, caches) for t in range(T)]
    torch.testing.assert_close(pack(torch.cat(steps, 1), flat_y), padded, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("block", BLOCK_NAMES)
@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("pool", POOLS)
@torch.no_grad()
def test_padding_and_packing_change_no_class(block, kind, pool):
    attention = replace(STACK.attention, kind=kind)
    encoder = replace(
        STACK, block=block, attention=attention, position=PositionConfig("sinusoidal")
    )
    model = build_classifier(ModelConfig(encoder=encoder, pool=pool), source=V, classes=C).eval()
    x, layout = tokens(B, S), Layout.padded(SOURCE)
    scores = model(x, layout=layout)
    flat = layout.as_packed()
    torch.testing.assert_close(model(pack(x, flat), layout=flat), scores, atol=1e-5, rtol=1e-5)
    alone = torch.cat([model(x[[b], :n], layout=Layout.full(1, n)) for b, n in enumerate(SOURCE)])
    torch.testing.assert_close(alone, scores, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_without_positions_a_pooled_answer_does_not_change_with_the_order():
    order = torch.randperm(S)
    for position in ("none", "rotary"):
        config = ModelConfig(encoder=replace(STACK, position=PositionConfig(position)))
        model = build_classifier(config, source=V, classes=C).eval()
        x, layout = tokens(B, S), Layout.full(B, S)
        gap = (model(x[:, order], layout=layout) - model(x, layout=layout)).abs().max()
        assert gap < 1e-5 if position == "none" else gap > 1e-4


def test_an_empty_row_pools_to_zeros():
    layout = Layout.padded([3, 0], longest=3)
    for pool in POOLS.values():
        pooled = pool(24)(torch.randn(2, 3, 24), layout)
        assert pooled[1].eq(0).all()
        assert pooled[0].ne(0).any()


@pytest.mark.usefixtures("half_on_cpu")
@pytest.mark.parametrize("pool", POOLS)
def test_every_pool_works_in_half_precision(pool):
    model = build_classifier(ModelConfig(encoder=STACK, pool=pool), source=V, classes=C)
    with torch.autocast("cpu", torch.bfloat16):
        assert model(tokens(B, S), layout=Layout.padded(SOURCE)).isfinite().all()


@torch.no_grad()
def test_every_block_needs_a_cache_of_its_own():
    model = build_language_model(ModelConfig(decoder=STACK), vocabulary=V)
    for caches, found in (([], 0), ([GrowingCache()] * 2, 1), ([GrowingCache()], 1)):
        with pytest.raises(ValueError, match=f"2 blocks need one cache each, got {found}; call"):
            model(tokens(B, T), layout=Layout.full(B, T), caches=caches)


def test_tied_and_shared_weights_are_one():
    sizes = {
        (tie, share): parameters(
            build_transformer(encoder_decoder(tie=tie, share=share), vocabulary=V)
        )
        for tie in (False, True)
        for share in (False, True)
    }
    assert sizes[False, False] - sizes[True, False] == V * 24
    assert sizes[True, False] - sizes[True, True] == V * 24


MODELS = (
    {
        "transformer": (
            lambda: build_transformer(encoder_decoder(), vocabulary=V),
            lambda model: model(
                tokens(B, S), tokens(B, T), source=Layout.full(B, S), target=Layout.full(B, T)
            ),
            Batch(B, T, S),
        ),
        "language model": (
            lambda: build_language_model(ModelConfig(decoder=STACK), vocabulary=V),
            lambda model: model(tokens(B, T), layout=Layout.full(B, T)),
            Batch(B, T),
        ),
        "masked model": (
            lambda: build_masked_model(ModelConfig(encoder=STACK), vocabulary=V),
            lambda model: model(tokens(B, T), layout=Layout.full(B, T)),
            Batch(B, T),
        ),
    }
    | {
        f"{block} classifier": (
            lambda block=block: build_classifier(
                ModelConfig(encoder=replace(STACK, block=block)), source=V, classes=C
            ),
            lambda model: model(tokens(B, T), layout=Layout.full(B, T)),
            Batch(B, T),
        )
        for block in BLOCK_NAMES
    }
    | {
        f"{position} language model": (
            lambda position=position: build_language_model(
                ModelConfig(decoder=replace(STACK, position=PositionConfig(position))), vocabulary=V
            ),
            lambda model: model(tokens(B, T), layout=Layout.full(B, T)),
            Batch(B, T),
        )
        for position in POSITION_NAMES
    }
)


@pytest.mark.parametrize(("make", "call", "batch"), MODELS.values(), ids=MODELS)
def test_counts_from_the_layers_equal_torch(make, call, batch):
    model = make().eval()
    for layer in model.modules():
        if isinstance(layer, MultiHeadAttention):
            layer.kernel = "plain"  # torch's counter does not see into the fused one on a CPU
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        call(model)
    assert forward_flops(model, batch) == counter.get_total_flops()
    assert parameters(model) == sum(weight.numel() for weight in set(model.parameters()))


def test_a_cost_that_is_not_known_is_not_guessed():
    linear = replace(
        STACK, attention=replace(STACK.attention, kind="linear"), position=PositionConfig("none")
    )
    for stack in (linear, replace(STACK, kind="gru")):
        model = build_masked_model(ModelConfig(encoder=stack), vocabulary=V)
        with pytest.raises(
            ValueError, match=r"the cost of a .* is not known; count it with torch's"
        ):
            forward_flops(model, Batch(B, T))


def test_a_deeper_stack_begins_with_gentler_blocks():
    out, query = {}, {}
    for depth in (2, 8):
        first = build_encoder(replace(STACK, depth=depth)).blocks[0]
        out[depth] = first.attention.to_out.weight.std().item()
        query[depth] = first.attention.to_q.weight.std().item()
        assert first.attention.to_q.bias.eq(0).all()
    assert out[2] / out[8] == pytest.approx(2, rel=0.1)
    assert query[2] / query[8] == pytest.approx(1, rel=0.1)


def test_a_missing_part_is_asked_for_by_name():
    with pytest.raises(GlassformerError, match=r"needs a decoder; set model\.decoder"):
        build_transformer(ModelConfig(encoder=STACK), vocabulary=V)
    with pytest.raises(GlassformerError, match="unknown pool 'middle'; the choices are mean, max"):
        build_classifier(ModelConfig(encoder=STACK, pool="middle"), source=V, classes=C)
    with pytest.raises(GlassformerError, match="a conformer block looks ahead and cannot decode"):
        build_language_model(ModelConfig(decoder=replace(STACK, block="conformer")), vocabulary=V)
    linformer = replace(STACK, attention=replace(STACK.attention, kind="linformer"))
    with pytest.raises(GlassformerError, match="linformer attention cannot decode from"):
        build_language_model(ModelConfig(decoder=linformer), vocabulary=V)
    sound = FrontendConfig(kind="subsampling")
    with pytest.raises(GlassformerError, match=r"reads tokens; drop frontend\.kind = subs"):
        build_masked_model(ModelConfig(encoder=STACK, frontend=sound), vocabulary=V)
    with pytest.raises(GlassformerError, match="share = true reads with the decoder's embedding"):
        build_transformer(encoder_decoder(share=True), vocabulary=V, source=3)
    with pytest.raises(GlassformerError, match="a frontend of tokens needs a vocabulary"):
        build_classifier(ModelConfig(encoder=STACK), classes=C)


@pytest.mark.parametrize("kind", FRONTEND_NAMES)
def test_every_frontend_is_built_from_settings(kind):
    frontend = FrontendConfig(kind=kind, bins=13, factor=4, hidden=5, patch=4, height=8, width=12)
    config = ModelConfig(frontend=frontend, encoder=STACK, decoder=STACK)
    model = build_transformer(config, vocabulary=V)
    layout, samples = Layout.full(B, S), torch.randn(B, S, 13)
    if kind in ("tokens", "ngrams"):
        samples = tokens(B, S)
    if kind == "patches":
        layout, samples = Layout.full(B, 1), torch.randn(B, 3, 8, 12)
    scores = model(samples, tokens(B, T), source=layout, target=Layout.full(B, T))
    assert scores.shape == (B, T, V)
