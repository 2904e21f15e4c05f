"""A fused encoder: a classifier that will not change any more says the same in fewer functions."""

from dataclasses import replace

import pytest
import torch

from glassformer.config import (
    AttentionConfig,
    FeedForwardConfig,
    ModelConfig,
    NormConfig,
    PositionConfig,
    StackConfig,
)
from glassformer.core.int8 import Int8Linear
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import causal
from glassformer.core.prepacked import MANY_PRODUCTS, can_prepack, rows_to_prepack
from glassformer.core.steps import linear
from glassformer.core.steps.linear import StepLinear
from glassformer.models.build import build_classifier
from glassformer.models.fused_encoder import FusedEncoder
from glassformer.models.packing import for_inference, int8_twin

WORDS = 29
STACK = StackConfig(dim=24, depth=2, max_length=23, attention=AttentionConfig(heads=3))
USUAL = {
    "bert": {"position": PositionConfig("learned")},
    "llama": {"norm": NormConfig("rms"), "feedforward": FeedForwardConfig(kind="swiglu")},
    "grouped": {"attention": AttentionConfig(heads=6, kv_heads=2, bias=("q", "out"))},
    "parallel": {"parallel": True, "position": PositionConfig("rotary", fraction=0.5)},
    "no positions": {"position": PositionConfig("none"), "norm": NormConfig("layer", bias=False)},
}
UNUSUAL = {
    "window": {"attention": AttentionConfig(heads=3, window=3)},
    "post": {"order": "post"},
    "alibi": {"position": PositionConfig("alibi")},
    "linear": {
        "attention": AttentionConfig(heads=3, kind="linear"),
        "position": PositionConfig("none"),
    },
    "conformer": {"block": "conformer"},
    "odd heads": {"dim": 27, "position": PositionConfig("rotary", fraction=0.9)},
}


def classifier(**settings):
    config = ModelConfig(encoder=replace(STACK, **settings))
    model = build_classifier(config, classes=5, source=WORDS).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.randn_like(weight)  # norms and biases, too
    return model


def tokens(rows, longest):
    return torch.randint(WORDS, (rows, longest))


@torch.inference_mode()
@pytest.mark.parametrize("lengths", [(7,), (11, 11), (5, 13, 2)], ids=str)
@pytest.mark.parametrize("name", USUAL)
def test_a_fused_encoder_says_what_the_encoder_says(name, lengths):
    model = classifier(**USUAL[name])
    twin = for_inference(model)
    assert isinstance(twin.encoder, FusedEncoder)
    layout = (
        Layout.padded(lengths) if len({*lengths}) > 1 else Layout.full(len(lengths), lengths[0])
    )
    ids = tokens(layout.rows, layout.longest)
    expected = model(ids, layout=layout)
    model.encoder.register_forward_pre_hook(lambda *given: pytest.fail("the encoder is asked"))
    torch.testing.assert_close(twin(ids, layout=layout), expected)


@torch.inference_mode()
@pytest.mark.parametrize("name", USUAL)
def test_keys_of_many_tokens_are_filled_up_and_not_looked_at(name, monkeypatch):
    model = classifier(**USUAL[name])
    twin, seen = for_inference(model), []
    attend = torch.nn.functional.scaled_dot_product_attention

    def watched(q, k, *others, **options):
        seen.append((q.shape[2], k.shape[2]))
        return attend(q, k, *others, **options)

    for lengths in ([7] * 11, [7] * 13, [7] * 2, [15] * 5, [*range(1, 16)], [23] * 3, [8] * 9):
        full = len({*lengths}) == 1
        layout = Layout.full(len(lengths), lengths[0]) if full else Layout.padded(lengths)
        ids = tokens(layout.rows, layout.longest)
        expected = model(ids, layout=layout)
        with monkeypatch.context() as patch:
            patch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
            torch.testing.assert_close(twin(ids, layout=layout), expected)
    assert {(7, 7), (15, 16)} <= {*seen}  # of few tokens, and of many
    assert len({keys for queries, keys in seen if queries == 7}) == 2


@torch.inference_mode()
def test_rows_longer_than_all_before_are_turned_as_far():
    model = classifier()
    twin = for_inference(model)
    for length in (3, 270, 5):
        ids, layout = tokens(2, length), Layout.full(2, length)
        torch.testing.assert_close(twin(ids, layout=layout), model(ids, layout=layout))


@torch.inference_mode()
@pytest.mark.parametrize("name", USUAL)
def test_a_single_vector_meets_the_weights_of_the_fused_encoder(name, monkeypatch):
    monkeypatch.setattr(linear, "can_slice", lambda weight: True)  # as in wide layers
    model, layout = classifier(**USUAL[name]), Layout.full(1, 1)
    ids = tokens(1, 1)
    torch.testing.assert_close(for_inference(model)(ids, layout=layout), model(ids, layout=layout))


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_encoder_of_another_kind_stays_as_it_is(name):
    model = classifier(**UNUSUAL[name])
    assert for_inference(model) is model


def test_an_encoder_that_computes_in_int8_stays_as_it_is():
    model = int8_twin(classifier(dim=96))
    assert any(isinstance(one, Int8Linear) for one in model.modules())
    assert for_inference(model) is model


def test_what_a_fused_encoder_cannot_do_the_encoder_does():
    model = classifier()
    twin, ids = for_inference(model), tokens(2, 7)
    layout = Layout.padded((7, 4))
    twin(ids, layout=layout).sum().backward()
    assert model.encoder.blocks[0].attention.to_q.weight.grad is not None
    packed = layout.as_packed()
    with torch.no_grad():
        usual = twin(ids, layout=layout)
        torch.testing.assert_close(twin(pack(ids, packed), layout=packed), usual)
        masked = twin(ids, layout=layout, mask=causal)
        torch.testing.assert_close(masked, model(ids, layout=layout, mask=causal))
        assert not torch.allclose(masked, usual)
        with torch.autocast("cpu"):
            torch.testing.assert_close(twin(ids, layout=layout), model(ids, layout=layout))


@torch.inference_mode()
@pytest.mark.skipif(not can_prepack(torch.ones(2, 2)), reason="needs oneDNN")
def test_many_rows_of_a_narrow_layer_take_prepacked_weights():
    layer = torch.nn.Linear(16, 24)
    step = StepLinear.of([layer], torch.float32)
    enough = -(-MANY_PRODUCTS // (16 * 24))
    for rows, prepacks in ((1, False), (enough - 1, False), (enough, True)):
        x = torch.randn(rows, 16)
        torch.testing.assert_close(step.reference(x), layer(x))
        assert ("weight" in vars(step.product)) == prepacks


@pytest.mark.skipif(not can_prepack(torch.ones(2, 2)), reason="needs oneDNN")
def test_a_single_row_takes_prepacked_weights_only_of_a_large_layer():
    large, below = torch.ones(1024, 1025), torch.ones(1024, 1024)
    assert (rows_to_prepack(large), rows_to_prepack(below)) == (1, 2)
