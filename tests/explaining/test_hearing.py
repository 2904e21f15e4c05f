"""Hearing: CTC posteriors and attention over time, for whatever reads and whatever writes."""

import numpy as np
import pytest
import torch

from glassformer.config import ModelConfig
from glassformer.config.values import build
from glassformer.core.layout import Layout
from glassformer.explaining.hearing import hear
from glassformer.explaining.views import hearing_picture
from glassformer.explaining.views.hearing_picture import HearingPicture, draw_hearing, peaks
from glassformer.explaining.watching import watching
from glassformer.models.blocks import BLOCKS
from glassformer.models.build import build_transcriber

BINS, VOCABULARY, FRAMES, VECTORS, HEADS, START = 7, 11, 22, 6, 3, 2
TOKENS = [5, 9, 5, 7]
STACK = {"dim": 12, "depth": 2, "dropout": 0.0, "attention": {"heads": HEADS}}


def model_of(encoder=None, decoder=None, *, writes=True):
    values = {
        "frontend": {"kind": "subsampling", "bins": BINS, "factor": 4},
        "encoder": STACK | (encoder or {}),
        **({"decoder": STACK | (decoder or {})} if writes else {}),
    }
    torch.manual_seed(3)
    return build_transcriber(build(ModelConfig, values), vocabulary=VOCABULARY).eval()


@torch.no_grad()
def watched_pass(model, features):
    """The maps and scores of a pass over the same, by hand."""
    written = torch.tensor([[START, *TOKENS]])
    layouts = {"source": Layout.full(1, FRAMES), "target": Layout.full(1, len(TOKENS) + 1)}
    with watching(model) as (watched, maps):
        scored = watched(features[None], written, **layouts)
    return maps, scored


@pytest.mark.parametrize("block", BLOCKS)
def test_attention_over_frames_and_posteriors_are_there_for_every_block(block):
    model, features = model_of({"block": block}), torch.randn(FRAMES, BINS)
    maps, scored = watched_pass(model, features)
    around = [maps[f"encoder.blocks.{number}.attention"] for number in range(2)]
    across = [maps[f"decoder.blocks.{number}.cross_attention"] for number in range(2)]
    for weights in around:
        assert weights.shape == (1, HEADS, VECTORS, VECTORS)
    for weights in across:
        assert weights.shape == (1, HEADS, len(TOKENS) + 1, VECTORS)
    for weights in (*around, *across):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    heard = hear(model, features, TOKENS, first=START)
    torch.testing.assert_close(heard.posteriors, scored.frames[0].softmax(-1))
    right = torch.stack(across).mean((0, 1, 2))[: len(TOKENS)]
    torch.testing.assert_close(heard.attention, right)


@pytest.mark.parametrize("encoder", ["lstm", "tcn"])
@pytest.mark.parametrize("decoder", ["attention", "gru"])
def test_models_without_softmax_attention_are_heard_too(encoder, decoder):
    model = model_of({"kind": encoder}, {} if decoder == "attention" else {"kind": decoder})
    heard = hear(model, torch.randn(FRAMES, BINS), TOKENS, first=START)
    assert heard.posteriors.shape == (VECTORS, VOCABULARY)
    assert heard.attention.shape == (len(TOKENS), VECTORS)
    torch.testing.assert_close(heard.attention.sum(1), torch.ones(len(TOKENS)))


def test_a_model_without_a_decoder_has_posteriors_alone():
    heard = hear(model_of(writes=False), torch.randn(FRAMES, BINS), [], first=START)
    assert heard.posteriors.shape == (VECTORS, VOCABULARY)
    assert heard.attention is None


def picture(**more):
    return HearingPicture(
        features=np.random.default_rng(0).normal(size=(FRAMES, BINS)),
        seconds=0.22,
        vector=0.04,
        unit="Hz",
        ticks=[(2.0, "500")],
        words=[("$ab", 0.04, 0.16)],
        tokens=["$", "a", "b"],
        **more,
    )


POSTERIORS = np.array([[0.9, 0.1, 0, 0], [0.1, 0.8, 0.1, 0], [0.2, 0.6, 0.2, 0]], np.float32)


@pytest.mark.parametrize(
    "more",
    [
        {"names": ["", "$", "a", "b"], "posteriors": POSTERIORS},
        {"attention": np.full((3, VECTORS), 1 / VECTORS, np.float32)},
    ],
    ids=["ctc", "attention"],
)
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_what_there_is_is_drawn(tmp_path, more, ending):
    path = tmp_path / f"heard.{ending}"
    draw_hearing(picture(**more), path)
    assert path.stat().st_size > 5000
    if ending == "svg":
        drawn = path.read_text()
        assert drawn.count("<image") == (1 if "names" in more else 2)  # the spectrogram, attention


def test_the_spectrogram_ends_where_its_frames_do(tmp_path, monkeypatch):
    ends = []
    monkeypatch.setattr(
        hearing_picture, "save_picture",
        lambda figure, path: ends.extend(
            (image.get_extent()[1], image.axes.get_xlim()[1])
            for axes in figure.axes for image in axes.images
        ),
    )  # fmt: skip
    draw_hearing(picture(frame=0.005), tmp_path / "a.png")
    assert ends == [(pytest.approx(0.005 * FRAMES), pytest.approx(0.22))]


def test_colours_are_explained_below_the_picture():
    assert picture().legend == ""
    said = picture(
        names=["", "$"], posteriors=POSTERIORS[:, :2], influence=np.ones((1, 2)), signed=False
    ).legend
    assert said == (
        "Influence: the darker, the more. "
        "CTC: grey for the blank, colours for tokens, named at their peaks."
    )


def test_a_peak_is_the_highest_place_of_a_stretch_where_one_token_is_likeliest():
    likely = [0, 1, 1, 0, 1, 2, 0]
    heights = [0.9, 0.6, 0.8, 0.9, 0.7, 0.5, 0.9]
    posteriors = np.zeros((7, 3), np.float32)
    posteriors[np.arange(7), likely] = heights
    assert peaks(posteriors) == [(2, 1), (4, 1), (5, 2)]
