"""Corners where a shortcut would be wrong: each was once a breakage that no other test noticed."""

import pytest
import torch

from glassformer.core.attention import MultiHeadAttention, attend, describe
from glassformer.core.caches import FixedCache, GrowingCache, PagePool
from glassformer.core.heads import Heads
from glassformer.core.kernels import KERNELS, packed
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import causal
from glassformer.core.positions import make_position

D, H = 12, 3
FAST = [name for name in KERNELS if name not in ("loop", "flex")]


@pytest.mark.parametrize("layout", [None, Layout.full(2, 1)], ids=["no layout", "unplaced layout"])
def test_a_layout_that_nobody_placed_stands_after_what_the_cache_holds(layout):
    layer, position = MultiHeadAttention(D, H), make_position("rotary", D, H, 8)
    x, cache = torch.randn(2, 5, D), GrowingCache()
    steps = [
        layer(token, mask=causal, position=position, cache=cache, layout=layout)
        for token in x.split(1, dim=1)
    ]
    whole = layer(x, mask=causal, position=position)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)


def test_a_new_row_beside_one_that_goes_on_sees_no_future():
    layer, cache = MultiHeadAttention(D, H), GrowingCache()
    x = torch.randn(2, 5, D)
    layer(x[:, :2], mask=causal, cache=cache, layout=Layout.padded([0, 2]))
    chunk = torch.stack([x[0], torch.cat([x[1, 2:], torch.zeros(2, D)])])
    said = layer(chunk, mask=causal, cache=cache, layout=Layout.padded([5, 3]))
    whole = layer(x, mask=causal)
    torch.testing.assert_close(said[0], whole[0])
    torch.testing.assert_close(said[1, :3], whole[1, 2:])


@pytest.mark.parametrize("kernel", ["plain", "tiled", "fused"])
def test_a_lone_query_is_the_newest_only_where_it_says_so(kernel):
    q, k, v = torch.randn(2, H, 1, 4), torch.randn(2, H, 5, 4), torch.randn(2, H, 5, 4)
    call = describe(q, k, mask=causal)  # the query stands at 0 and sees the first key alone
    torch.testing.assert_close(attend(q, k, v, call, kernel=kernel), v[:, :, :1])


def test_a_lone_query_across_a_memory_is_not_its_newest_token():
    layer, memory = MultiHeadAttention(D, H), torch.randn(2, 7, D)
    layout = Layout.full(2, 1).shifted(torch.tensor([2]), reach=3)
    x = torch.randn(2, 1, D)
    said = layer(x, memory, mask=causal, layout=layout)
    torch.testing.assert_close(said, layer(x, memory[:, :3]))


@pytest.mark.parametrize("kernel", FAST)
def test_a_bias_is_added_under_the_causal_mask_too(kernel):
    q, k, v = torch.randn(2, H, 5, 4), torch.randn(2, H, 5, 4), torch.randn(2, H, 5, 4)
    layout = Layout.full(2, 5)
    bias = make_position("alibi", D, H, 8).bias(q, layout, layout)
    call = describe(q, k, mask=causal, queries=layout, bias=bias)
    expected = attend(q, k, v, call, kernel="loop")
    torch.testing.assert_close(attend(q, k, v, call, kernel=kernel), expected)


@pytest.mark.parametrize("kernel", FAST)
@pytest.mark.parametrize(("key", "value"), [(4, 11), (11, 4)])
def test_values_may_be_wider_or_narrower_than_keys(kernel, key, value):
    q, k, v = torch.randn(2, H, 5, key), torch.randn(2, H, 7, key), torch.randn(2, H, 7, value)
    call = describe(q, k)
    expected = attend(q, k, v, call, kernel="loop")
    torch.testing.assert_close(attend(q, k, v, call, kernel=kernel), expected)


@pytest.mark.parametrize("name", ["shaw", "transformer-xl", "alibi", "rotary"])
def test_a_pack_in_many_groups_answers_as_in_one(name, monkeypatch):
    layer, position = MultiHeadAttention(D, H), make_position(name, D, H, 16)
    for weight in position.parameters():
        torch.nn.init.normal_(weight)
    layout = Layout.packed([2, 7, 3, 5, 7])
    x = torch.randn(layout.tokens, D)
    together = layer(x, mask=causal, position=position, layout=layout)
    monkeypatch.setattr(packed, "ANOTHER_CALL", -1)
    assert len(packed.groups_of([2, 7, 3, 5, 7], [2, 7, 3, 5, 7], D)) == 5
    apart = layer(x, mask=causal, position=position, layout=layout)
    torch.testing.assert_close(apart, together)
    alone = [
        layer(row[None], mask=causal, position=position)[0] for row in x.split([2, 7, 3, 5, 7])
    ]
    torch.testing.assert_close(apart, torch.cat(alone))


def test_an_empty_pack_has_an_empty_answer():
    layer, layout = MultiHeadAttention(D, H), Layout.packed([0, 0])
    assert layer(torch.zeros(0, D), layout=layout).shape == (0, D)


def test_cross_attention_drops_nothing_out_of_training():
    layer, memory = MultiHeadAttention(D, H, dropout=0.5), torch.randn(2, 7, D)
    x = torch.randn(2, 5, D)
    assert not torch.equal(layer(x, memory), layer(x, memory))
    layer.eval()
    torch.testing.assert_close(layer(x, memory), layer(x, memory))
    flat = Layout.full(2, 5).as_packed()
    packed_answer = layer(pack(x, flat), memory, layout=flat)
    torch.testing.assert_close(packed_answer, pack(layer(x, memory), flat))


# What a cache held before


NAN = float("nan")
SIZES = {"heads": H, "key_width": 4, "value_width": 4}


@torch.no_grad()
def test_nothing_of_a_page_s_last_owner_is_left_not_even_nan():
    layer, pool = MultiHeadAttention(D, H), PagePool(pages=2, page_size=4, layers=1, **SIZES)
    a = pool.open()
    layout, [cache] = pool.extend([a], [4])
    layer(torch.full((1, 4, D), NAN), mask=causal, layout=layout, cache=cache)
    pool.close(a)
    layout, [cache] = pool.extend([pool.open(), pool.open()], [2, 4])
    x = torch.randn(2, 4, D)
    x[0, 2:] = NAN  # padding, which goes to the spare page
    said = layer(x, mask=causal, layout=layout, cache=cache)
    torch.testing.assert_close(said[0, :2], layer(x[:1, :2], mask=causal)[0])


@torch.no_grad()
def test_a_cleared_cache_holds_not_even_nan():
    layer, cache = MultiHeadAttention(D, H), FixedCache(2, 5, **SIZES)
    layer(torch.full((2, 3, D), NAN), mask=causal, cache=cache)
    cache.clear()
    x = torch.randn(2, 2, D)
    torch.testing.assert_close(layer(x, mask=causal, cache=cache), layer(x, mask=causal))


@torch.no_grad()
@pytest.mark.parametrize("sizes", [{"dtype": torch.float64}, {"heads": 1}], ids=str)
def test_a_cache_made_for_other_keys_is_refused_and_left_as_it_was(sizes):
    layer, cache = MultiHeadAttention(D, H), FixedCache(2, 5, **(SIZES | sizes))
    with pytest.raises(
        ValueError, match=r"^the cache has room for heads .* make it with the layer's"
    ):
        layer(torch.randn(2, 3, D), mask=causal, cache=cache)
    assert cache.lengths.tolist() == [0, 0]


# Arguments that would do nothing


def test_arguments_that_would_do_nothing_are_refused():
    layer, x = MultiHeadAttention(D, H), torch.randn(2, 5, D)
    layout, position = Layout.full(2, 5), make_position("rotary", D, H, 8)
    with pytest.raises(ValueError, match=r"^a memory_layout belongs to a memory that is a tensor"):
        layer(x, memory_layout=layout)
    with pytest.raises(ValueError, match=r"^a memory_layout belongs to a memory that is a tensor"):
        layer(x, layer.keep(x), memory_layout=layout)
    with pytest.raises(ValueError, match=r"^cross-attention takes no position and no cache"):
        layer.weights(x, x, position=position)


@pytest.mark.usefixtures("without_shape_hook")
def test_a_tensor_is_no_mask():
    layer, x = MultiHeadAttention(D, H), torch.randn(2, 5, D)
    with pytest.raises(
        ValueError, match=r"^a mask is a rule such as causal or window\(3\), got a Tensor"
    ):
        layer(x, mask=torch.ones(5, 5).bool())


@pytest.mark.parametrize("heads", [0, Heads(3, 0), Heads(3, key_width=-1)], ids=str)
def test_sizes_under_one_are_refused(heads):
    with pytest.raises(
        ValueError, match=r"^dim, heads, kv_heads and widths must be at least 1, got 12"
    ):
        MultiHeadAttention(D, heads)
