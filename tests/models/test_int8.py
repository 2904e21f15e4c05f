"""int8 on a CPU: close to what the model says, wherever its linear layers are."""

import copy

import pytest
import torch
from torch import nn

from glassformer.config import AttentionConfig, FeedForwardConfig, ModelConfig, StackConfig
from glassformer.core import int8
from glassformer.core.int8 import Int8Linear
from glassformer.core.layout import Layout
from glassformer.errors import GlassformerError
from glassformer.models.build import build_language_model, build_transformer
from glassformer.models.incremental import continuing
from glassformer.models.incremental.fused import FusedScorer
from glassformer.models.packing import for_inference, int8_twin

pytestmark = pytest.mark.skipif(
    int8.ENGINE not in torch.backends.quantized.supported_engines, reason="no kernels for int8"
)
V = 97
STACK = StackConfig(
    dim=72,
    depth=2,
    dropout=0.0,
    attention=AttentionConfig(heads=6, kv_heads=2),  # keys and values are narrow
    feedforward=FeedForwardConfig(kind="swiglu", hidden=131),
)


def error(found, expected):
    return ((found - expected).std() / expected.std()).item()


@torch.no_grad()
def test_a_layer_in_int8_is_close_and_adds_its_bias():
    linear, x = nn.Linear(80, 67), torch.randn(5, 3, 80)
    linear.weight[11] = 0.0  # no scale of zero
    linear.bias[11] = 3.0
    x[2] *= 100.0  # no scale of another vector
    twin = Int8Linear(linear.weight, linear.bias)
    for found, expected in zip(twin(x), linear(x), strict=True):
        assert 0 < error(found, expected) < 0.03
    assert 0 < error(twin(x[0, :1]), linear(x[0, :1])) < 0.03
    torch.testing.assert_close(twin(x)[..., 11], linear(x)[..., 11])
    assert copy.deepcopy(twin) is twin


@torch.no_grad()
def test_a_twin_in_int8_says_nearly_what_its_model_says_and_leaves_it_alone():
    model = build_language_model(ModelConfig(decoder=STACK), vocabulary=V).eval()
    twin = int8_twin(model)
    tokens, layout = torch.randint(V, (3, 11)), Layout.full(3, 11)
    scores = model(tokens, layout=layout)
    assert 0 < error(twin(tokens, layout=layout), scores) < 0.05
    assert model.unembed is None
    assert isinstance(twin.unembed, Int8Linear)
    attention = twin.decoder.blocks[1].attention
    assert isinstance(attention.to_q, Int8Linear)
    assert attention.to_k is model.decoder.blocks[1].attention.to_k  # too small
    scorer = continuing(for_inference(twin), tokens.tolist())
    assert isinstance(scorer, FusedScorer)
    found, _ = scorer.step(scorer.first[:, None], scorer.begin(1, 2))
    assert 0 < error(found[:, 0], scores[:, -1]) < 0.05


@torch.no_grad()
def test_an_encoder_and_decoder_have_a_twin_in_int8():
    model = build_transformer(ModelConfig(encoder=STACK, decoder=STACK), vocabulary=V).eval()
    tokens, layout = torch.randint(V, (3, 5)), Layout.full(3, 5)
    options = {"source": layout, "target": layout}
    found = int8_twin(model)(tokens, tokens, **options)
    assert 0 < error(found, model(tokens, tokens, **options)) < 0.05


def test_a_processor_without_the_kernels_is_told_to_leave_it_out(monkeypatch):
    monkeypatch.setattr(int8, "ENGINE", "another")
    with pytest.raises(GlassformerError, match="int8 needs an x86 processor; leave it out"):
        Int8Linear(nn.Linear(64, 64).weight)
