"""Blocks: one contract for all, convolutions that stay within a row, and refusals in words."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from glassformer.config import (
    BLOCK_NAMES,
    AttentionConfig,
    ConvolutionConfig,
    FeedForwardConfig,
    NormConfig,
    StackConfig,
)
from glassformer.core.caches import GrowingCache
from glassformer.core.layout import Layout, pack, pad
from glassformer.core.masks import causal, documents, everything, window
from glassformer.core.positions import make_position
from glassformer.errors import GlassformerError
from glassformer.models.blocks import BLOCKS
from glassformer.models.blocks.convolution import convolve, depthwise
from glassformer.models.stacks import Decoder, Encoder

B, T, D, H, K, WIDTH, HALF = 5, 11, 13, 3, 2, 7, 17
LENGTHS = (11, 3, 0, 5, 1)  # one longer than the convolution, the others shorter
CONVOLVING = [name for name in BLOCKS if name != "transformer"]
CONFIG = StackConfig(
    dim=D,
    depth=1,
    dropout=0.0,
    attention=AttentionConfig(heads=H, key_width=K),
    feedforward=FeedForwardConfig(kind="silu", hidden=2 * HALF),
    convolution=ConvolutionConfig(width=WIDTH),
)
ALONE = replace(CONFIG, convolution=ConvolutionConfig(width=1))
CLOSE = {"atol": 1e-5, "rtol": 1e-4}

each_block = pytest.mark.parametrize("name", BLOCKS)
each_convolving = pytest.mark.parametrize("name", CONVOLVING)


def randomised(module):
    """No weight and no running average left where it starts: there a mistake could hide."""
    for weight in module.parameters():
        nn.init.normal_(weight, std=max(weight.shape[1:].numel(), 4) ** -0.5)
    for average in module.buffers():
        nn.init.uniform_(average, 0.5, 2.0)
    return module


def block_of(name, config=CONFIG):
    return randomised(BLOCKS[name](config))


def run(block, x, layout, position="rotary"):
    scheme = make_position(position, D, H, T, width=K)
    return block(x, layout=layout, mask=everything, position=scheme)


def pull(answers, x):
    """What a random push on the answers does to `x`; a plain sum is blind behind a norm."""
    return torch.autograd.grad(answers, x, torch.randn_like(answers))[0]


# The contract


def test_the_names_are_those_of_the_configuration():
    assert tuple(BLOCKS) == BLOCK_NAMES


@each_block
@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("width", [1, WIDTH, 31])
def test_packed_is_padded_and_both_are_one_by_one(name, norm, width):
    norm = NormConfig(norm)
    config = replace(CONFIG, norm=norm, convolution=ConvolutionConfig(width=width, norm=norm))
    block, layout = block_of(name, config).eval(), Layout.padded(LENGTHS)
    x, flat = torch.randn(B, T, D), layout.as_packed()
    padded, packed = run(block, x, layout), run(block, pack(x, flat), flat)
    assert padded.shape == x.shape
    torch.testing.assert_close(packed, pack(padded, flat), **CLOSE)
    alone = [run(block, x[[b], :n], Layout.full(1, n))[0] for b, n in enumerate(LENGTHS)]
    torch.testing.assert_close(packed, torch.cat(alone), **CLOSE)


@each_block
def test_no_tokens_at_all_are_no_trouble(name):
    x = torch.randn(B, 0, D)
    assert run(block_of(name), x, Layout.padded([0] * B)).shape == x.shape


@each_block
@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
def test_nothing_leaks_from_padding_or_from_other_rows(name, packed):
    block, layout = block_of(name), Layout.packed(LENGTHS, budget=23)
    rows = layout.row_of if packed else pad(layout.row_of + 1, layout) - 1  # -1 in padding
    layout = layout if packed else layout.as_padded()
    x = torch.randn(*rows.shape, D, requires_grad=True)
    for row in range(B):
        ours = rows == row
        push = pull(run(block, x, layout)[ours], x).abs().sum(-1)
        assert push[~ours].eq(0).all()
        assert push[ours].ne(0).all()


@each_block
def test_the_mask_says_who_is_heard_where_convolutions_hear_no_one(name):
    block, at = block_of(name, ALONE), torch.arange(T)
    x = torch.randn(1, T, D, requires_grad=True)
    for t in range(T):
        heard = pull(block(x, layout=Layout.full(1, T), mask=window(2))[0, t], x).any(-1)[0]
        assert heard.tolist() == ((at - t).abs() < 2).tolist()


@each_block
def test_order_is_seen_through_positions_where_convolutions_see_none(name):
    block, x, order = block_of(name, ALONE), torch.randn(B, T, D), torch.randperm(T)
    for position, least, most in (("none", 0, 1e-5), ("rotary", 1e-2, 1e9)):
        answer, shuffled = (run(block, y, Layout.full(B, T), position) for y in (x, x[:, order]))
        assert least <= (shuffled - answer[:, order]).abs().max() <= most


@each_block
def test_chance_enters_in_training_only(name):
    config = replace(CONFIG, dropout=0.5, depth_dropout=0.3)
    block, x, layout = block_of(name, config), torch.randn(B, T, D), Layout.full(B, T)
    assert not torch.equal(run(block, x, layout), run(block, x, layout))
    block.eval()
    assert torch.equal(run(block, x, layout), run(block, x, layout))


@each_block
def test_of_a_block_left_out_only_the_last_norm_remains(name):
    block = block_of(name, replace(CONFIG, depth_dropout=0.999))
    x, layout = torch.randn(B, T, D), Layout.full(B, T)
    expected = x if name == "transformer" else block.norm(x, layout)
    torch.testing.assert_close(run(block, x, layout), expected)


@each_block
def test_gradients_reach_every_parameter_from_where_it_starts(name):
    block, layout = BLOCKS[name](CONFIG), Layout.padded(LENGTHS)
    answers = run(block, torch.randn(B, T, D), layout)[layout.real]
    answers.backward(torch.randn_like(answers))
    unmoved = [n for n, p in block.named_parameters() if p.grad is None or not p.grad.any()]
    assert not unmoved


@each_block
def test_an_encoder_can_be_made_of_it(name):
    encoder, layout = Encoder(replace(CONFIG, block=name, depth=2)).eval(), Layout.padded(LENGTHS)
    x, flat = torch.randn(B, T, D), layout.as_packed()
    padded = encoder(x, layout=layout)
    torch.testing.assert_close(encoder(pack(x, flat), layout=flat), pack(padded, flat), **CLOSE)


KEYS = {
    "transformer": """
        attention.to_q attention.to_k attention.to_v attention.to_out attention_residual.before
        feedforward.widen feedforward.narrow feedforward_residual.before
    """,
    "conformer": """
        first_feedforward.widen first_feedforward.narrow first_residual.before
        attention.to_q attention.to_k attention.to_v attention.to_out attention_residual.before
        convolution.widen convolution.depthwise convolution.norm convolution.to_out
        convolution_residual.before
        last_feedforward.widen last_feedforward.narrow last_residual.before norm
    """,
    "branchformer": """
        attention.to_q attention.to_k attention.to_v attention.to_out attention_norm
        gate.widen gate.norm gate.depthwise gate.narrow gate_norm merge norm
    """,
    "e-branchformer": """
        first_feedforward.widen first_feedforward.narrow first_residual.before
        attention.to_q attention.to_k attention.to_v attention.to_out attention_norm
        gate.widen gate.norm gate.depthwise gate.narrow gate_norm merge_depthwise merge
        last_feedforward.widen last_feedforward.narrow last_residual.before norm
    """,
}


@each_block
def test_weights_have_names_that_read(name):
    wanted = [f"{part}.{kind}" for part in KEYS[name].split() for kind in ("weight", "bias")]
    assert list(BLOCKS[name](CONFIG).state_dict()) == wanted


# Convolutions


def test_a_convolution_hears_its_neighbours_in_the_row_and_no_one_else():
    layout, layer = Layout.packed(LENGTHS), depthwise(D, WIDTH)
    x, row, at = torch.randn(20, D, requires_grad=True), layout.row_of, layout.positions
    for t in range(20):
        heard = pull(convolve(layer, x, layout)[t], x).abs().sum(-1).ne(0)
        assert heard.tolist() == ((row == row[t]) & ((at - at[t]).abs() <= WIDTH // 2)).tolist()


@pytest.mark.parametrize("longest", [0, T])
def test_a_pack_of_nothing_convolves_to_nothing(longest):
    layout = Layout.packed([0] * B, longest=longest)
    assert convolve(depthwise(D, WIDTH), torch.randn(0, D), layout).shape == (0, D)


@each_convolving
@pytest.mark.parametrize("padding", [0.0, 1e3])
def test_batch_norm_in_training_knows_only_real_tokens(name, padding):
    config = replace(CONFIG, convolution=ConvolutionConfig(width=WIDTH, norm=NormConfig("batch")))
    block, layout = block_of(name, config), Layout.padded(LENGTHS)
    norm = (block.convolution if name == "conformer" else block.gate).norm
    theirs, flat = nn.BatchNorm1d(norm.weight.numel()), layout.as_packed()
    theirs.load_state_dict(
        {key.replace("variance", "var"): value for key, value in norm.state_dict().items()}
        | {"num_batches_tracked": torch.tensor(0)}
    )
    seen = []
    norm.register_forward_hook(lambda _, inputs, answer: seen.append((inputs[0], answer)))
    tokens = torch.randn(20, D)
    x = pad(tokens, flat).masked_fill(~layout.real[..., None], padding)
    padded = run(block, x, layout)
    after = norm.running_mean.clone(), norm.running_variance.clone()
    torch.testing.assert_close(run(block, tokens, flat), pack(padded, flat), **CLOSE)
    inputs, answer = seen[0]
    torch.testing.assert_close(pack(answer, flat), theirs(pack(inputs, flat)), **CLOSE)
    torch.testing.assert_close(after, (theirs.running_mean, theirs.running_var), **CLOSE)


# Refusals


def call(name, **options):
    x = torch.randn(B, T, D)
    return BLOCKS[name](CONFIG)(x, layout=Layout.full(B, T), **{"mask": everything, **options})


REFUSALS = {
    "memory_dim": (
        lambda name: BLOCKS[name](CONFIG, memory_dim=19),
        "for encoders and has no cross-attention, but got memory_dim = 19; use a Transformer",
    ),
    "order": (
        lambda name: BLOCKS[name](replace(CONFIG, order="post")),
        "has its norms before its parts and one at its end.*; got order 'post', use 'pre'",
    ),
    "cache": (
        lambda name: call(name, cache=GrowingCache()),
        "takes no cache, since its convolutions look ahead: .*; pass the whole sequence",
    ),
    "memory": (
        lambda name: call(
            name,
            memory=BLOCKS["transformer"](CONFIG, memory_dim=D).keep(
                torch.randn(B, T, D), Layout.full(B, T)
            ),
        ),
        "has no cross-attention; use a decoder's block",
    ),
    "keep": (
        lambda name: BLOCKS[name](CONFIG).keep(torch.randn(B, T, D), Layout.full(B, T)),
        "has no cross-attention; use a decoder's block",
    ),
    "causal": (
        lambda name: call(name, mask=causal),
        "a convolution of width 7 sees 3 steps to each side, which causal does not allow .*; "
        "use `everything`, or a window of 4 or more",
    ),
    "narrow window": (lambda name: call(name, mask=window(3)), r"which window\(3\) does not"),
    "documents": (lambda name: call(name, mask=documents([2, 9])), r"which documents\(\[2, 9\]"),
    "language model": (
        lambda name: Decoder(replace(CONFIG, block=name))(
            torch.randn(B, T, D), layout=Layout.full(B, T)
        ),
        "which causal does not allow everywhere",
    ),
}


@each_convolving
@pytest.mark.parametrize(("wrong", "words"), REFUSALS.values(), ids=REFUSALS)
def test_what_only_a_decoder_could_do_is_refused_in_words(name, wrong, words):
    with pytest.raises((ValueError, GlassformerError), match=words):
        wrong(name)


@each_convolving
def test_a_window_as_wide_as_the_convolution_is_welcome(name):
    assert call(name, mask=window(WIDTH // 2 + 1)).shape == (B, T, D)


@pytest.mark.parametrize("name", ["branchformer", "e-branchformer"])
def test_a_gate_of_odd_width_is_refused_in_words(name):
    odd = replace(CONFIG, feedforward=FeedForwardConfig(hidden=HALF))
    words = "feedforward.hidden must be even, so that one half can gate the other; got 17"
    with pytest.raises(GlassformerError, match=words):
        BLOCKS[name](odd)
