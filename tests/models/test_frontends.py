"""Frontends: lengths are exact, forms agree, and nothing comes in from padding or neighbours."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st
from torch import nn

from glassformer.core.layout import Layout, pack
from glassformer.core.positions.absolute import waves
from glassformer.models.frontends import FRONTENDS, Frontend
from glassformer.models.frontends.mel import MelResNet, Subsampling, TimeSubsampling
from glassformer.models.frontends.ngrams import NgramTokens
from glassformer.models.frontends.patches import Patches
from glassformer.models.frontends.tokens import Tokens

B, M, D, V, C = 3, 7, 13, 17, 2
LENGTHS = (19, 5, 11)
SOUND = {
    "subsampling by 2": lambda: Subsampling(M, D, factor=2),
    "subsampling by 4": lambda: Subsampling(M, D),
    "subsampling by 8": lambda: Subsampling(M, D, factor=8),
    "conv1d by 2": lambda: TimeSubsampling(M, D, channels=5, depth=1),
    "conv1d by 8": lambda: TimeSubsampling(M, D, channels=5, depth=3),
    "resnet": lambda: MelResNet(M, D, channels=5, depth=2),
    "resnet with rms": lambda: MelResNet(M, D, channels=5, depth=3, norm="rms"),
}
for_sound = pytest.mark.parametrize("make", SOUND.values(), ids=SOUND)


def alone(frontend, frames, length):
    """The vectors of one row without neighbours or padding."""
    vectors, layout = frontend(frames[None, :length], Layout.full(1, length))
    assert layout.is_full
    assert vectors.shape[1] == layout.longest
    return vectors[0]


def influence(vectors, frames):
    """How much each frame pushes the sum of the squares of these vectors: one number a frame."""
    (push,) = torch.autograd.grad(vectors.square().sum(), frames)
    return push.abs().sum(-1)


# One interface

EXAMPLES = {
    "tokens": lambda: (Tokens(V, D), torch.randint(V, (B, 19))),
    "ngrams": lambda: (NgramTokens(V, D, longest=3, buckets=101), torch.randint(V, (B, 19))),
    "subsampling": lambda: (Subsampling(M, D), torch.randn(B, 19, M)),
    "conv1d": lambda: (TimeSubsampling(M, D, channels=5, depth=2), torch.randn(B, 19, M)),
    "resnet": lambda: (MelResNet(M, D, channels=5, depth=2), torch.randn(B, 19, M)),
    "patches": lambda: (Patches(C, D, size=3, image=(15, 21)), torch.randn(B, C, 15, 21)),
}


@pytest.mark.parametrize("name", FRONTENDS)
def test_every_frontend_gives_vectors_of_its_width_and_a_layout_that_fits_them(name):
    frontend, samples = EXAMPLES[name]()
    assert isinstance(frontend, FRONTENDS[name])
    assert isinstance(frontend, Frontend)
    vectors, layout = frontend(samples, Layout.padded(LENGTHS))
    assert vectors.shape == (layout.rows, layout.longest, frontend.dim) == (B, layout.longest, D)
    assert layout.reach == layout.longest


def test_a_module_that_does_not_know_its_width_is_no_frontend():
    assert not isinstance(nn.Linear(M, D), Frontend)


# Tokens


@pytest.mark.parametrize("scale", [True, False])
def test_a_token_becomes_its_line_of_the_table_times_the_root_of_the_width(scale):
    frontend, tokens = Tokens(V, D, scale=scale), torch.randint(V, (B, 5))
    layout = Layout.padded([5, 2, 3])
    vectors, same = frontend(tokens, layout)
    expected = frontend.table.weight[tokens] * (math.sqrt(D) if scale else 1)
    torch.testing.assert_close(vectors, expected)
    assert same is layout
    flat = layout.as_packed()
    packed, same = frontend(pack(tokens, flat), flat)
    torch.testing.assert_close(packed, pack(expected, flat))
    assert same is flat


def test_scores_are_products_with_the_same_table():
    frontend, x = Tokens(V, D), torch.randn(B, 5, D)
    expected = torch.einsum("btd,vd->btv", x, frontend.table.weight)
    torch.testing.assert_close(frontend.scores(x), expected)
    torch.testing.assert_close(frontend.scores(x[0]), expected[0])
    assert [name for name, _ in frontend.named_parameters()] == ["table.weight"]


def test_vectors_begin_with_a_variance_of_one_and_scores_too():
    frontend = Tokens(1009, 101)
    vectors, _ = frontend(torch.arange(1009)[None], Layout.full(1, 1009))
    assert vectors.std().item() == pytest.approx(1, abs=0.02)
    assert frontend.scores(torch.randn(7, 101)).std().item() == pytest.approx(1, abs=0.1)


# Sound


@pytest.mark.parametrize("factor", [2, 4, 8])
@settings(max_examples=20)
@given(lengths=st.lists(st.integers(0, 37), min_size=1, max_size=5), spare=st.integers(0, 3))
def test_lengths_follow_the_convolutions_exactly(factor, lengths, spare):
    frontend = Subsampling(2, 3, factor=factor)
    longest = max(lengths) + spare
    frames, layout = torch.randn(len(lengths), longest, 2), Layout.padded(lengths, longest=longest)
    vectors, after = frontend(frames, layout)
    expected = [
        alone(frontend, frames[row], n).shape[0] if n else 0 for row, n in enumerate(lengths)
    ]
    assert after.lengths.tolist() == expected == [-(-n // factor) for n in lengths]
    assert vectors.shape[1] == after.longest == max(-(-longest // factor), 1)
    flat = layout.as_packed()
    packed, after = frontend(pack(frames, flat), flat)
    assert after.lengths.tolist() == expected
    assert len(packed) == after.tokens == sum(expected)


@for_sound
def test_packed_is_padded_and_both_are_one_by_one(make):
    frontend, lengths = make(), (*LENGTHS, 0, 1)
    layout = Layout.padded(lengths, longest=23)
    frames, flat = torch.randn(len(lengths), 23, M), layout.as_packed()
    padded, after = frontend(frames, layout)
    packed, flat_after = frontend(pack(frames, flat), flat)
    assert (after.is_packed, flat_after.is_packed) == (False, True)
    torch.testing.assert_close(packed, pack(padded, after.as_packed()))
    each = [alone(frontend, frames[row], n) for row, n in enumerate(lengths) if n]
    torch.testing.assert_close(packed, torch.cat(each))


@for_sound
def test_nothing_comes_in_from_padding(make):
    frontend, layout = make(), Layout.padded(LENGTHS, longest=23)
    frames = torch.randn(B, 23, M, requires_grad=True)
    vectors, after = frontend(frames, layout)
    push = influence(vectors[after.real], frames)
    assert push[~layout.real].eq(0).all()
    assert push[layout.real].ne(0).all()
    spoilt = frames.detach().masked_fill(~layout.real[..., None], torch.nan)
    torch.testing.assert_close(frontend(spoilt, layout)[0][after.real], vectors[after.real])


@for_sound
def test_nothing_comes_in_from_a_neighbour_in_the_pack(make):
    frontend, layout = make(), Layout.packed(LENGTHS, budget=37)
    frames = torch.randn(37, M, requires_grad=True)
    for row in range(B):
        vectors, after = frontend(frames, layout)
        assert after.fillers.equal(layout.fillers)
        push, ours = influence(vectors[after.row_of == row], frames), layout.row_of == row
        assert push[~ours].eq(0).all()
        assert push[ours].ne(0).all()


@for_sound
def test_a_batch_of_empty_rows_gives_empty_rows(make):
    for layout in (Layout.full(B, 0), Layout.padded([0] * B), Layout.packed([0] * B)):
        frames = torch.zeros(0, M) if layout.is_packed else torch.zeros(B, 0, M)
        vectors, after = make()(frames, layout)
        assert after.lengths.tolist() == [0] * B
        assert vectors.isfinite().all()


@for_sound
def test_lengths_are_never_read_from_the_device(make):
    layout = Layout.padded(torch.zeros(B, dtype=torch.long, device="meta"), longest=19)
    vectors, after = make().to("meta")(torch.zeros(B, 19, M, device="meta"), layout)
    assert vectors.shape == (B, after.longest, D)
    assert after.tokens is None
    assert after.device == after.lengths.device == torch.device("meta")


def test_subsampling_is_two_convolutions_and_a_linear_layer():
    frontend, frames = Subsampling(M, D), torch.randn(B, 19, M)
    x = frames[:, None]
    for convolution in frontend.convolutions:
        x = F.conv2d(x, convolution.weight, convolution.bias, stride=2, padding=1).relu()
    assert x.shape == (B, D, 5, 2)
    expected = torch.stack([frontend.to_vector(x[:, :, t].flatten(1)) for t in range(5)], 1)
    torch.testing.assert_close(frontend(frames, Layout.full(B, 19))[0], expected)


def test_subsampling_over_time_is_one_convolution_after_another():
    frontend, frames = TimeSubsampling(M, D, channels=5, depth=2), torch.randn(B, 19, M)
    first, second = frontend.convolutions
    x = F.conv1d(frames.mT, first.weight, first.bias, stride=2, padding=2).relu()
    x = F.conv1d(x, second.weight, second.bias, stride=2, padding=2).relu()
    assert x.shape == (B, D, 5)
    torch.testing.assert_close(frontend(frames, Layout.full(B, 19))[0], x.mT)


def test_a_stage_of_the_resnet_adds_a_shortcut_to_two_convolutions():
    frontend, frames = MelResNet(M, D, channels=5, depth=1), torch.randn(1, 11, M)

    def run(convolution, x, **how):
        return F.conv1d(x.mT, convolution.weight, convolution.bias, **how).mT

    (stage,) = frontend.stages
    x = F.layer_norm(run(frontend.stem, frames, padding=1), (5,)).relu()
    y = F.layer_norm(run(stage.halve, x, stride=2, padding=1), (5,)).relu()
    y = F.layer_norm(run(stage.refine, y, padding=1), (5,))
    expected = frontend.to_vector((y + run(stage.shortcut, x[:, ::2])).relu())
    torch.testing.assert_close(frontend(frames, Layout.full(1, 11))[0], expected)


def test_batch_norm_is_a_choice_and_never_the_default():
    kinds = {type(m).__name__ for m in MelResNet(M, D, channels=5, depth=2).modules()}
    assert "LayerNorm" in kinds
    assert "BatchNorm" not in kinds
    frontend = MelResNet(M, D, channels=5, depth=2, norm="batch")
    frames, layout = torch.randn(B, 19, M), Layout.padded(LENGTHS)
    vectors, after = frontend(frames, layout)
    spoilt = frames.masked_fill(~layout.real[..., None], 1e3)
    torch.testing.assert_close(frontend(spoilt, layout)[0][after.real], vectors[after.real])


# Images


@pytest.mark.parametrize("position", ["learned", "sinusoidal"])
@pytest.mark.parametrize("first", [True, False])
def test_patches_are_what_a_loop_cuts_out(position, first):
    frontend = Patches(C, D, size=3, image=(15, 21), first=first, position=position)
    images, weight = torch.randn(B, C, 15, 21), frontend.to_vector.weight.flatten(1)
    expected = [frontend.first.expand(B, D)] if first else []
    for row in range(5):
        for column in range(7):
            patch = images[:, :, 3 * row : 3 * row + 3, 3 * column : 3 * column + 3]
            place = frontend.table[7 * row + column]
            expected.append(patch.flatten(1) @ weight.T + frontend.to_vector.bias + place)
    vectors, layout = frontend(images)
    torch.testing.assert_close(vectors, torch.stack(expected, 1))
    assert layout.is_full
    assert (layout.rows, layout.longest) == (B, 35 + first)


def test_patches_are_those_of_a_hugging_face_vit():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": D, "image_size": (15, 21), "patch_size": 3, "num_channels": C}
    config = transformers.ViTConfig(**sizes, num_hidden_layers=1, num_attention_heads=1)
    theirs = transformers.ViTModel(config).embeddings.eval()
    ours = Patches(C, D, size=3, image=(15, 21), first=True)
    with torch.no_grad():
        for weight in theirs.parameters():
            nn.init.normal_(weight)
        ours.to_vector.load_state_dict(theirs.patch_embeddings.projection.state_dict())
        ours.first.copy_(theirs.cls_token[0, 0] + theirs.position_embeddings[0, 0])
        ours.table.copy_(theirs.position_embeddings[0, 1:])
    images = torch.randn(B, C, 15, 21)
    torch.testing.assert_close(ours(images)[0], theirs(images), atol=1e-5, rtol=1e-5)


def test_sinusoidal_places_code_the_row_beside_the_column():
    table = Patches(C, D, size=3, image=(15, 21), position="sinusoidal").table.unflatten(0, (5, 7))
    for row in range(5):
        for column in range(7):
            torch.testing.assert_close(table[row, column, :6], waves(torch.tensor(row), 6))
            torch.testing.assert_close(table[row, column, 6:], waves(torch.tensor(column), 7))


# Refusals

REFUSALS = {
    "factor": (
        lambda: Subsampling(M, D, factor=3),
        "factor must be a power of two, 2 or more, since every .* halves .*; got 3, try 4",
    ),
    "norm": (
        lambda: MelResNet(M, D, channels=5, depth=2, norm="layers"),
        "unknown norm 'layers'; did you mean 'layer'",
    ),
    "bins": (
        lambda: Subsampling(M, D)(torch.zeros(B, 19, 11), Layout.full(B, 19)),
        "frames have 11 mel bins, but the frontend was made for 7; .* with 7 bins",
    ),
    "starting in the middle": (
        lambda: Subsampling(M, D)(
            torch.zeros(B, 19, M), replace(Layout.full(B, 19), starts=torch.tensor([5]))
        ),
        "needs whole recordings, but this layout starts in the middle of them; pass the layout",
    ),
    "patches that do not fit": (
        lambda: Patches(C, D, size=4, image=(16, 21)),
        "an image of 16 x 21 pixels does not divide into patches of 4 x 4; resize",
    ),
    "another image": (
        lambda: Patches(C, D, size=3, image=(15, 21))(torch.zeros(B, C, 21, 15)),
        "images have 21 x 15 pixels, but the frontend was made for 15 x 21; resize them",
    ),
    "unknown position": (
        lambda: Patches(C, D, size=3, image=(15, 21), position="learnt"),
        "unknown position 'learnt'; did you mean 'learned'",
    ),
}


@pytest.mark.parametrize(("call", "words"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.usefixtures("without_shape_hook")
def test_bad_calls_are_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
