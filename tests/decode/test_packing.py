"""A twin with prepacked weights says what its model says."""

import pytest
import torch
from small_models import END, FIRST, V, encoder_decoder, language_model, prompts, sources
from torch import nn

from glassformer.config import (
    AttentionConfig,
    DecodeConfig,
    FrontendConfig,
    ModelConfig,
    StackConfig,
)
from glassformer.core.layout import Layout
from glassformer.core.prepacked import WIDE, can_prepack
from glassformer.decode import Request, decode
from glassformer.models.build import build_language_model, build_transcriber
from glassformer.models.incremental import continuing, translating
from glassformer.models.packing import PackedLinear, for_inference, packed_twin

needs_kernels = pytest.mark.skipif(not can_prepack(torch.ones(2, 2)), reason="needs oneDNN")


@needs_kernels
@torch.no_grad()
def test_a_twin_scores_as_its_model_and_leaves_it_alone():
    model, (samples, source) = encoder_decoder(), sources()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    tokens = torch.randint(V, (len(samples), 5))
    target = Layout.full(*tokens.shape)
    twin = packed_twin(model)
    torch.testing.assert_close(
        twin(samples, tokens, source=source, target=target),
        model(samples, tokens, source=source, target=target),
    )
    linear = [part for part in twin.modules() if isinstance(part, nn.Linear)]
    assert all(isinstance(part, PackedLinear) for part in linear)
    assert len(linear) == sum(isinstance(part, nn.Linear) for part in model.modules())
    assert not any(isinstance(part, PackedLinear) for part in model.modules())
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, before[name])


@needs_kernels
def test_a_twin_of_tied_weights_scores_by_its_table():
    model, texts = language_model(tie=True), prompts()
    twin = packed_twin(model)
    assert model.unembed is None
    assert isinstance(twin.unembed, PackedLinear)
    config = DecodeConfig(method="beam", best=3, max_length=7)
    ours, theirs = (decode(continuing(m, texts), Request(end=END), config) for m in (twin, model))
    assert [[h.tokens for h in row] for row in ours] == [[h.tokens for h in row] for row in theirs]


@pytest.mark.usefixtures("half_on_cpu")
@needs_kernels
@torch.no_grad()
def test_under_autocast_a_twin_says_what_its_model_says():
    model, x = nn.Linear(7, 5), torch.randn(3, 7)
    twin = PackedLinear(model.weight, model.bias)
    with torch.autocast("cpu", torch.bfloat16):
        assert twin(x.bfloat16()).dtype == torch.bfloat16
        torch.testing.assert_close(twin(x), model(x), rtol=0, atol=0)


@needs_kernels
@pytest.mark.parametrize(("dim", "prepacks"), [(WIDE, True), (WIDE - 8, False)])
def test_only_wide_models_have_a_swift_twin(dim, prepacks):
    stack = StackConfig(dim=dim, depth=1, attention=AttentionConfig(heads=4))
    model = build_language_model(ModelConfig(decoder=stack), vocabulary=V)
    assert isinstance(for_inference(model).unembed, PackedLinear) == prepacks
    assert (for_inference(model).decoder is model.decoder) != prepacks
    sound = ModelConfig(frontend=FrontendConfig(kind="subsampling", bins=8), encoder=stack)
    by_ctc = build_transcriber(sound, vocabulary=V)
    assert isinstance(for_inference(by_ctc).to_token, PackedLinear) == prepacks
    plain = nn.Linear(WIDE, 3)
    assert for_inference(plain) is plain


def test_what_cannot_be_prepacked_stays_as_it_is():
    model = encoder_decoder().double()
    assert packed_twin(model) is model
    samples, layout = sources()
    scorer = translating(packed_twin(model), samples, layout, first=FIRST)
    assert decode(scorer, Request(end=END), DecodeConfig(max_length=3))
