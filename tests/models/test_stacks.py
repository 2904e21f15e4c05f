"""Stacks: the same as torch.nn's with the same weights, and nothing leaks through any of them."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn

from glassformer.config import (
    AttentionConfig,
    FeedForwardConfig,
    ModelConfig,
    NormConfig,
    PositionConfig,
    StackConfig,
)
from glassformer.core.caches import FixedCache, PagePool
from glassformer.core.layout import Layout, pack, pad
from glassformer.core.masks import causal, everything, window
from glassformer.core.norms import NORMS
from glassformer.core.positions import POSITIONS
from glassformer.core.residual import ORDERS
from glassformer.models.build import build_transformer
from glassformer.models.stacks import Decoder, Encoder

D, H, HIDDEN, B, T, S = 12, 3, 23, 2, 5, 7
SOURCE, TARGET = (7, 3), (5, 2)
CONFIG = StackConfig(
    dim=D,
    depth=2,
    position=PositionConfig("none"),
    max_length=13,
    dropout=0.0,
    attention=AttentionConfig(heads=H),
    feedforward=FeedForwardConfig(kind="relu", hidden=HIDDEN),
)


def copy_attention(ours, theirs):
    """torch.nn.MultiheadAttention keeps queries, keys and values in one matrix."""
    with torch.no_grad():
        for name, weight, bias in zip(
            ("to_q", "to_k", "to_v"),
            theirs.in_proj_weight.chunk(3),
            theirs.in_proj_bias.chunk(3),
            strict=True,
        ):
            getattr(ours, name).weight.copy_(weight)
            getattr(ours, name).bias.copy_(bias)
    ours.to_out.load_state_dict(theirs.out_proj.state_dict())


def copy_layer(ours, theirs, order):
    """One layer of torch's encoder or decoder into one of our blocks."""
    side = "before" if order == "pre" else "after"
    norms = ["attention_residual", "feedforward_residual"]
    copy_attention(ours.attention, theirs.self_attn)
    if ours.cross_attention is not None:
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        norms.insert(1, "cross_residual")
    for number, name in enumerate(norms, 1):
        norm = getattr(theirs, f"norm{number}")
        getattr(getattr(ours, name), side).load_state_dict(norm.state_dict())
    ours.feedforward.widen.load_state_dict(theirs.linear1.state_dict())
    ours.feedforward.narrow.load_state_dict(theirs.linear2.state_dict())


def shaken(module):
    """Weights that are not at their gentle beginnings, so that everything matters."""
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return module


@pytest.fixture(params=["pre", "post"])
def pair(request):
    """Our encoder and decoder and torch's, with the same weights."""
    order = request.param
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch tells us which of its own fast paths it will miss
        theirs = nn.Transformer(
            D, H, 2, 2, HIDDEN, dropout=0.0, batch_first=True, norm_first=order == "pre"
        )
    if order == "post":  # torch ends with one more norm; the paper and we do not
        theirs.encoder.norm = theirs.decoder.norm = None
    shaken(theirs)
    config = replace(CONFIG, order=order)
    encoder, decoder = Encoder(config), Decoder(config, memory_dim=D)
    for ours, stack in ((encoder, theirs.encoder), (decoder, theirs.decoder)):
        for block, layer in zip(ours.blocks, stack.layers, strict=True):
            copy_layer(block, layer, order)
        if order == "pre":
            ours.norm.load_state_dict(stack.norm.state_dict())
    return encoder, decoder, theirs


def test_encoder_and_decoder_equal_torch_with_the_same_weights(pair):
    encoder, decoder, theirs = pair
    source, target = Layout.padded(SOURCE), Layout.padded(TARGET)
    x, y = torch.randn(B, S, D, requires_grad=True), torch.randn(B, T, D, requires_grad=True)
    memory = encoder(x, layout=source)
    ours = decoder(y, layout=target, memory=decoder.keep(memory, source))
    expected = theirs(
        x,
        y,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(T),
        src_key_padding_mask=~source.real,
        memory_key_padding_mask=~source.real,
        tgt_is_causal=True,
    )
    torch.testing.assert_close(ours[target.real], expected[target.real], atol=1e-5, rtol=1e-5)
    push = torch.randn_like(ours[target.real])
    felt = torch.autograd.grad(ours[target.real], [x, y], push)
    for grad, wanted in zip(
        felt, torch.autograd.grad(expected[target.real], [x, y], push), strict=True
    ):
        torch.testing.assert_close(grad, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("position", POSITIONS)
def test_packed_is_padded_through_both_stacks(order, norm, position):
    config = replace(CONFIG, order=order, norm=NormConfig(norm), position=PositionConfig(position))
    encoder, decoder = shaken(Encoder(config)).eval(), shaken(Decoder(config, memory_dim=D)).eval()
    source, target = Layout.padded(SOURCE), Layout.padded(TARGET)
    x, y = torch.randn(B, S, D), torch.randn(B, T, D)
    kept = decoder.keep(encoder(x, layout=source), source)
    padded = decoder(y, layout=target, memory=kept)
    flat_x, flat_y = source.as_packed(), target.as_packed()
    kept = decoder.keep(encoder(pack(x, flat_x), layout=flat_x), flat_x)
    packed = decoder(pack(y, flat_y), layout=flat_y, memory=kept)
    torch.testing.assert_close(packed, pack(padded, flat_y), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_a_decoder_goes_on_one_token_at_a_time_as_if_it_read_all_at_once(order, position):
    config = replace(CONFIG, order=order, position=PositionConfig(position))
    decoder = shaken(Decoder(config, memory_dim=D)).eval()
    source = Layout.padded(SOURCE)
    kept = decoder.keep(torch.randn(B, S, D), source)
    y = torch.randn(B, T, D)
    whole = decoder(y, layout=Layout.full(B, T), memory=kept)
    caches = decoder.new_caches()
    steps = [
        decoder(token, layout=Layout.full(B, 1), memory=kept, caches=caches)
        for token in y.split(1, dim=1)
    ]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mask", [everything, causal, window(2)], ids=str)
def test_nothing_leaks_from_padding_the_future_or_a_neighbour(mask):
    encoder, layout = shaken(Encoder(CONFIG)), Layout.packed(SOURCE)
    x = torch.randn(layout.tokens, D, requires_grad=True)
    for token in range(layout.tokens):
        (push,) = torch.autograd.grad(encoder(x, layout=layout, mask=mask)[token].sum(), x)
        ours = layout.row_of == layout.row_of[token]
        assert push[~ours].eq(0).all()
        if mask is causal:
            assert push[token + 1 :].eq(0).all()
    padded = pad(x.detach(), layout).requires_grad_()
    rows = layout.as_padded()
    (push,) = torch.autograd.grad(encoder(padded, layout=rows, mask=mask)[rows.real].sum(), padded)
    assert push[~rows.real].eq(0).all()
    assert push[rows.real].ne(0).all()


def test_checkpoint_keys_read_as_english():
    keys = list(Decoder(replace(CONFIG, depth=1), memory_dim=D).state_dict())
    assert keys == [
        *(f"blocks.0.attention.{name}.{kind}" for name in PROJECTIONS for kind in KINDS),
        *(f"blocks.0.attention_residual.before.{kind}" for kind in KINDS),
        *(f"blocks.0.cross_attention.{name}.{kind}" for name in PROJECTIONS for kind in KINDS),
        *(f"blocks.0.cross_residual.before.{kind}" for kind in KINDS),
        *(f"blocks.0.feedforward.{name}.{kind}" for name in ("widen", "narrow") for kind in KINDS),
        *(f"blocks.0.feedforward_residual.before.{kind}" for kind in KINDS),
        *(f"norm.{kind}" for kind in KINDS),
    ]


PROJECTIONS, KINDS = ("to_q", "to_k", "to_v", "to_out"), ("weight", "bias")


def test_a_decoder_without_its_memory_and_a_memory_without_its_decoder_are_refused():
    decoder = Decoder(CONFIG, memory_dim=D)
    with pytest.raises(ValueError, match="a decoder's block attends to a memory; pass what `kee"):
        decoder(torch.randn(B, T, D), layout=Layout.full(B, T))
    alone = Decoder(CONFIG)
    with pytest.raises(ValueError, match="a TransformerBlock has no cross-attention; use a deco"):
        alone.keep(torch.randn(B, S, D), Layout.full(B, S))


def roomy(name, decoder):
    """Caches for two rows, with room beyond the 7 positions of a learned table."""
    sizes = {"heads": H, "key_width": D // H, "value_width": D // H}
    if name == "growing":
        return decoder.new_caches()
    return [FixedCache(2, 11, **sizes) for _ in decoder.blocks]


@torch.no_grad()
@pytest.mark.parametrize("name", ["growing", "fixed"])
def test_tokens_that_fit_a_learned_table_go_on_however_far_padding_stands(name):
    decoder = shaken(Decoder(replace(CONFIG, position=PositionConfig("learned"), max_length=7)))
    caches, x = roomy(name, decoder), torch.randn(2, 7, D)
    first = decoder(x[:, :5], layout=Layout.padded([5, 2]), caches=caches)
    chunk = torch.stack([torch.cat([x[0, 5:], x[0, :3]]), x[1, 2:]])  # padding stands at 7, 8, 9
    second = decoder(chunk, layout=Layout.padded([2, 5]), caches=caches)
    whole = decoder(x, layout=Layout.full(2, 7))
    torch.testing.assert_close(torch.cat([first[0], second[0, :2]]), whole[0])
    torch.testing.assert_close(torch.cat([first[1, :2], second[1]]), whole[1])
    with pytest.raises(ValueError, match=r"^positions up to 7 are needed, but the learned tab"):
        decoder(x[:, :1], layout=Layout.padded([0, 1]), caches=caches)


@torch.no_grad()
def test_tokens_that_fit_a_learned_table_go_on_in_pages_too():
    decoder = shaken(Decoder(replace(CONFIG, position=PositionConfig("learned"), max_length=7)))
    sizes = {"heads": H, "key_width": D // H, "value_width": D // H}
    pool, x = PagePool(pages=9, page_size=2, layers=2, **sizes), torch.randn(2, 7, D)
    rows = [pool.open(), pool.open()]
    for lengths, tokens in (([5, 2], x[:, :5]), ([1, 5], torch.stack([x[0, 2:], x[1, 2:]]))):
        layout, caches = pool.extend(rows, lengths)
        answer = decoder(tokens, layout=layout, caches=caches)
    torch.testing.assert_close(answer[1], decoder(x, layout=Layout.full(2, 7))[1, 2:])


@pytest.mark.full
@pytest.mark.parametrize("order", ORDERS)
def test_six_and_six_layers_train_in_every_order(order):
    """They learn to copy, from chance to nearly none wrong; every order has the same settings."""
    steps, vocabulary, length = 800, 7, 5
    stack = replace(CONFIG, dim=32, depth=6, order=order, position=PositionConfig("learned"))
    stack = replace(stack, attention=AttentionConfig(heads=4))
    model = build_transformer(ModelConfig(encoder=stack, decoder=stack), vocabulary=vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps)
    layout, start = Layout.full(32, length), torch.full((32, 1), vocabulary - 1)
    for _ in range(steps):
        x = torch.randint(0, vocabulary - 1, (32, length))
        scores = model(x, torch.cat([start, x[:, :-1]], 1), source=layout, target=layout)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), x.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    assert loss.item() < 0.1  # chance is 1.79
