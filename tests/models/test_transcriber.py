"""Transcriber: padding changes nothing, whatever reads and whatever writes."""

import pytest
import torch

from glassformer.config import ModelConfig
from glassformer.config.values import build
from glassformer.core.layout import Layout
from glassformer.decode import Request, decode
from glassformer.models.build import build_transcriber
from glassformer.models.incremental import attending

BINS, VOCABULARY, LENGTHS, TARGETS = 7, 11, [23, 9], [3, 5]
ENCODERS = {
    "transformer": {},
    "conformer": {"block": "conformer"},
    "branchformer": {"block": "branchformer"},
    "e-branchformer": {"block": "e-branchformer"},
    "relative": {"position": "transformer-xl"},
    "lstm": {"kind": "lstm"},
    "tcn": {"kind": "tcn"},
}


def model_of(encoder, decoder=True, frontend="subsampling"):
    stack = {"dim": 12, "depth": 2, "dropout": 0.0, "attention": {"heads": 3}}
    values = {
        "frontend": {"kind": frontend, "bins": BINS, "factor": 4, "hidden": 5},
        "encoder": stack | encoder,
        **({"decoder": stack} if decoder else {}),
    }
    return build_transcriber(build(ModelConfig, values), vocabulary=VOCABULARY).eval()


def batch():
    return torch.randn(2, max(LENGTHS), BINS), torch.randint(4, VOCABULARY, (2, max(TARGETS)))


@pytest.mark.parametrize("frontend", ["subsampling", "conv1d", "resnet"])
@pytest.mark.parametrize("name", ENCODERS)
def test_a_sound_is_scored_alone_as_it_is_beside_a_longer_one(name, frontend):
    model, (features, tokens) = model_of(ENCODERS[name], frontend=frontend), batch()
    layouts = {"source": Layout.padded(LENGTHS), "target": Layout.padded(TARGETS)}
    frames, written, _ = model(features, tokens, **layouts)
    for row, (length, target) in enumerate(zip(LENGTHS, TARGETS, strict=True)):
        alone = {"source": Layout.padded([length]), "target": Layout.padded([target])}
        single = model(features[row : row + 1, :length], tokens[row : row + 1, :target], **alone)
        vectors = -(-length // 4)
        torch.testing.assert_close(frames[row, :vectors], single[0][0], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(written[row, :target], single[1][0], atol=1e-5, rtol=1e-4)


def test_a_decoder_writes_from_what_was_heard_once():
    model, (features, _) = model_of({}), batch()
    heard = model.listen(features, Layout.padded(LENGTHS), vectors=9)
    assert heard.layout.tokens == 9
    scorer = attending(model, model.keep(heard), heard.layout, first=2)
    found = decode(scorer, Request(end=3, limits=[4, 4]))
    tokens = torch.tensor([[2, *found[0][0].tokens[:2]]])
    source, target = Layout.padded(LENGTHS[:1]), Layout.full(1, 3)
    _, scores, _ = model(features[:1, : LENGTHS[0]], tokens, source=source, target=target)
    assert scores[0].argmax(-1).tolist() == list(found[0][0].tokens[:3])


def test_after_half_of_the_blocks_frames_are_scored_as_if_they_were_all():
    model, (features, _) = model_of({}, decoder=False), batch()
    model.halves, layout = True, Layout.padded(LENGTHS)
    assert model(features, source=layout).halfway is None
    halfway = model.train()(features, source=layout).halfway
    del model.encoder.blocks[1]
    shorter = model.eval()(features, source=layout).frames
    torch.testing.assert_close(halfway[:, :3], shorter[:, :3])


def test_without_a_decoder_there_is_ctc_alone():
    model, (features, _) = model_of({}, decoder=False), batch()
    frames, written, _ = model(features, source=Layout.padded(LENGTHS))
    assert frames.shape == (2, 6, VOCABULARY)
    assert written is None
    with pytest.raises(ValueError, match="this model has no decoder to write with"):
        attending(model, [], Layout.full(2, 6), first=2)
