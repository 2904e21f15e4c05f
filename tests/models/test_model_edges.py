"""Whole models at the edges: batches without tokens, and padding that holds large numbers."""

from dataclasses import replace

import pytest
import torch

from glassformer.config import (
    BLOCK_NAMES,
    KIND_NAMES,
    POSITION_NAMES,
    AttentionConfig,
    ConvolutionConfig,
    FeedForwardConfig,
    ModelConfig,
    NormConfig,
    PositionConfig,
    StackConfig,
)
from glassformer.core.feedforward import FEEDFORWARDS
from glassformer.core.layout import Layout
from glassformer.core.norms import NORMS
from glassformer.models.baselines import BASELINE_DECODERS, BASELINE_ENCODERS
from glassformer.models.build import (
    build_classifier,
    build_encoder,
    build_language_model,
    build_transformer,
)
from glassformer.models.pooling import POOLS
from glassformer.models.stacks import Decoder, Encoder

D, V, C = 12, 13, 5
STACK = StackConfig(
    dim=D,
    depth=1,
    max_length=7,
    dropout=0.0,
    attention=AttentionConfig(heads=3, summary=2),
    convolution=ConvolutionConfig(width=3),
    feedforward=FeedForwardConfig(hidden=22),
)
ENCODERS = {
    **{name: replace(STACK, position=PositionConfig(name)) for name in POSITION_NAMES},
    **{name: replace(STACK, block=name) for name in BLOCK_NAMES},
    **{name: replace(STACK, norm=NormConfig(kind=name)) for name in NORMS},
    **{name: replace(STACK, kind=name) for name in BASELINE_ENCODERS},
    **{
        f"{name} net": replace(STACK, feedforward=FeedForwardConfig(kind=name))
        for name in FEEDFORWARDS
    },
    **{
        f"{name} attention": replace(
            STACK, position=PositionConfig("none"), attention=replace(STACK.attention, kind=name)
        )
        for name in KIND_NAMES
    },
}
EMPTY = {
    "full": (Layout.full(2, 0), torch.zeros(2, 0, dtype=torch.long)),
    "padded": (Layout.padded([0, 0]), torch.zeros(2, 0, dtype=torch.long)),
    "packed": (Layout.packed([0, 0]), torch.zeros(0, dtype=torch.long)),
}
each_empty_form = pytest.mark.parametrize("form", EMPTY)


@each_empty_form
@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_reads_no_tokens(name, form):
    layout, tokens = EMPTY[form]
    x = torch.zeros(*tokens.shape, D)
    assert build_encoder(ENCODERS[name])(x, layout=layout).shape == x.shape


@each_empty_form
@pytest.mark.parametrize("pool", POOLS)
def test_every_pool_makes_zeros_of_no_tokens(pool, form):
    layout, tokens = EMPTY[form]
    assert POOLS[pool](D)(torch.zeros(*tokens.shape, D), layout).equal(torch.zeros(2, D))
    model = build_classifier(ModelConfig(encoder=STACK, pool=pool), source=V, classes=C)
    assert model(tokens, layout=layout).equal(model.to_class.bias.expand(2, C))


@each_empty_form
@pytest.mark.parametrize("kind", ["attention", *BASELINE_DECODERS])
def test_every_decoder_reads_no_tokens_of_no_source(kind, form):
    layout, tokens = EMPTY[form]
    config = ModelConfig(encoder=STACK, decoder=replace(STACK, kind=kind))
    model = build_transformer(config, vocabulary=V)
    scores = model(tokens, tokens, source=layout, target=layout)
    assert scores.shape == (*tokens.shape, V)
    full = Layout.full(2, 3)
    written = model(tokens, torch.ones(2, 3, dtype=torch.long), source=layout, target=full)
    assert written.isfinite().all()


@each_empty_form
def test_a_language_model_reads_no_tokens(form):
    layout, tokens = EMPTY[form]
    model = build_language_model(ModelConfig(decoder=STACK), vocabulary=V)
    assert model(tokens, layout=layout).shape == (*tokens.shape, V)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("make", [Encoder, Decoder])
def test_padding_of_large_numbers_changes_no_answer_and_no_gradient(make, norm):
    stack, layout = make(replace(STACK, norm=NormConfig(norm))), Layout.padded([5, 2, 0])
    x, found = torch.randn(3, 5, D), []
    for size in (0.0, 1e20, 3e38):
        spoilt = x.masked_fill(~layout.real[..., None], size)
        answer = stack(spoilt, layout=layout)[layout.real]
        gradients = torch.autograd.grad(answer.square().sum(), [*stack.parameters()])
        found.append([answer, *gradients])
    for spoilt in found[1:]:
        for ours, theirs in zip(spoilt, found[0], strict=True):
            torch.testing.assert_close(ours, theirs)
