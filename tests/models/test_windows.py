"""Sliding windows: a layer sees as far as its window, in training, packed, cached and decoded."""

import pytest
import torch

from glassformer.config import AttentionConfig, PositionConfig, StackConfig
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import FixedCache, GrowingCache
from glassformer.core.kernels import KERNELS
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import causal, window
from glassformer.models.stacks import Decoder, Encoder

B, T, D, H, K = 3, 17, 12, 2, 6
LENGTHS = (17, 11, 2)


def stack(kind, windows, *, depth=2, **settings):
    """With weights that are not at their gentle beginnings, so that everything seen matters."""
    attention = AttentionConfig(heads=H, window=windows)
    made = kind(StackConfig(dim=D, depth=depth, dropout=0.0, attention=attention, **settings))
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return made.eval()


@pytest.mark.parametrize(
    ("kind", "windows", "depth", "before", "after"),
    [
        (Decoder, 3, 2, 4, 0),
        (Decoder, (2, 4), 2, 4, 0),
        (Decoder, (2, 4), 3, 5, 0),  # the pattern is repeated: 2, 4, 2
        (Encoder, (2, 4), 3, 5, 5),
        (Decoder, (2, 0), 2, T, 0),
    ],
)
def test_each_layer_sees_as_far_as_the_window_of_its_place(kind, windows, depth, before, after):
    model, at = stack(kind, windows, depth=depth), 9
    x = torch.randn(1, T, D, requires_grad=True)
    (push,) = torch.autograd.grad(model(x, layout=Layout.full(1, T))[0, at].sum(), x)
    seen = push[0].ne(0).any(-1).nonzero().flatten().tolist()
    assert seen == list(range(max(0, at - before), at + after + 1))


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "loop"])
@pytest.mark.parametrize("kind", [Encoder, Decoder])
@pytest.mark.usefixtures("without_shape_hook")  # flex compiles its rules
@torch.no_grad()
def test_every_kernel_keeps_to_the_windows_padded_and_packed(kind, kernel):
    model, x = stack(kind, (2, 5)), torch.randn(B, T, D)
    layout = Layout.padded(LENGTHS)
    flat = layout.as_packed()
    expected = pack(model(x, layout=layout), flat)
    for block in model.blocks:
        block.attention.kernel = kernel
    torch.testing.assert_close(pack(model(x, layout=layout), flat), expected, atol=1e-5, rtol=1e-5)
    packed = model(pack(x, flat), layout=flat)
    torch.testing.assert_close(packed, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("position", ["rotary", "alibi"])
@pytest.mark.parametrize(
    "make_cache",
    [GrowingCache, lambda: FixedCache(B, T, heads=H, key_width=K, value_width=K)],
    ids=["growing", "fixed"],
)
@torch.no_grad()
def test_a_decoder_goes_on_from_its_caches_within_its_windows(make_cache, position):
    model = stack(Decoder, (3, 0, 2), depth=3, position=PositionConfig(position))
    x = torch.randn(B, T, D)
    whole = model(x, layout=Layout.full(B, T))
    caches, said = [make_cache() for _ in model.blocks], []
    for part in x.split([7, 1, 1, 5, 1, 2], dim=1):
        said.append(model(part, layout=Layout.full(B, part.shape[1]), caches=caches))
    torch.testing.assert_close(torch.cat(said, dim=1), whole, atol=1e-5, rtol=1e-5)


def test_the_weights_of_a_layer_with_a_window_are_those_of_the_mask():
    layer, x = MultiHeadAttention(D, H, window=3), torch.randn(B, T, D)
    twin = MultiHeadAttention(D, H)
    twin.load_state_dict(layer.state_dict())
    expected = twin.weights(x, mask=causal & window(3))
    torch.testing.assert_close(layer.weights(x, mask=causal), expected)
    assert expected.ne(0).sum(-1).max() == 3


def test_a_window_over_a_memory_is_refused():
    layer = MultiHeadAttention(D, H, window=3)
    with pytest.raises(ValueError, match=r"a window\(3\) counts steps within one sequence"):
        layer(torch.randn(B, T, D), torch.randn(B, T, D))
