"""Blocks are those of the papers: Hugging Face's Conformer, and the Branchformers by hand."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from glassformer.config import (
    AttentionConfig,
    ConvolutionConfig,
    FeedForwardConfig,
    NormConfig,
    StackConfig,
)
from glassformer.core.layout import Layout
from glassformer.core.masks import everything
from glassformer.core.positions import make_position
from glassformer.models.blocks import BLOCKS

B, T, D, H, K, WIDTH, HALF = 5, 11, 13, 3, 2, 7, 17
LENGTHS = (11, 3, 0, 5, 1)  # one longer than the convolution, the others shorter
CONFIG = StackConfig(
    dim=D,
    dropout=0.0,
    attention=AttentionConfig(heads=H, key_width=K),
    feedforward=FeedForwardConfig(kind="silu", hidden=2 * HALF),
    convolution=ConvolutionConfig(width=WIDTH),
)
CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def randomised(module):
    """No weight and no running average left where it starts: there a mistake could hide."""
    for weight in module.parameters():
        nn.init.normal_(weight, std=max(weight.shape[1:].numel(), 4) ** -0.5)
    for average in module.buffers():
        if average.is_floating_point():
            nn.init.uniform_(average, 0.5, 2.0)
    return module.eval()


# The Conformer


def commuting(heads, half):
    """A matrix that gives the same before and after a turn: each pair of channels by itself."""
    a, b = torch.randn(2, heads, heads, half) / heads
    turn = torch.stack([torch.stack([a, -b]), torch.stack([b, a])])  # (2, 2, H, H, K / 2)
    spread = torch.einsum("pqhgj,ji->hpjgqi", turn, torch.eye(half))
    return spread.reshape(2 * heads * half, -1)


def conformer_of_hugging_face(kind, dim, hidden):
    module = pytest.importorskip(
        "transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer"
    )
    config = module.Wav2Vec2ConformerConfig(
        hidden_size=dim,
        num_attention_heads=H,
        intermediate_size=hidden,
        hidden_act="silu",
        conv_depthwise_kernel_size=WIDTH,
        position_embeddings_type=kind,
        attn_implementation="eager",
    )
    layer = randomised(module.Wav2Vec2ConformerEncoderLayer(config))
    if kind == "rotary":  # it turns before it projects; the rotary paper projects, then turns
        for projection in (layer.self_attn.linear_q, layer.self_attn.linear_k):
            projection.weight.data = commuting(H, dim // H // 2)
            projection.bias.data.zero_()
    codes = {
        "rotary": module.Wav2Vec2ConformerRotaryPositionalEmbedding,
        "relative": module.Wav2Vec2ConformerRelPositionalEmbedding,
    }
    return layer, codes[kind](config) if kind in codes else lambda x: None


PARTS = {
    "ffn1.intermediate_dense": "first_feedforward.widen",
    "ffn1.output_dense": "first_feedforward.narrow",
    "ffn1_layer_norm": "first_residual.before",
    "self_attn.linear_q": "attention.to_q",
    "self_attn.linear_k": "attention.to_k",
    "self_attn.linear_v": "attention.to_v",
    "self_attn.linear_out": "attention.to_out",
    "self_attn_layer_norm": "attention_residual.before",
    "conv_module.layer_norm": "convolution_residual.before",
    "conv_module.pointwise_conv1": "convolution.widen",
    "conv_module.depthwise_conv": "convolution.depthwise",
    "conv_module.batch_norm": "convolution.norm",
    "conv_module.pointwise_conv2": "convolution.to_out",
    "ffn2.intermediate_dense": "last_feedforward.widen",
    "ffn2.output_dense": "last_feedforward.narrow",
    "ffn2_layer_norm": "last_residual.before",
    "final_layer_norm": "norm",
}


def copied(theirs, ours):
    """Their weights in our block; their convolutions have no biases, so ours are zero."""
    state = {key: torch.zeros_like(value) for key, value in ours.state_dict().items()}
    for key, value in theirs.state_dict().items():
        part, _, leaf = key.rpartition(".")
        if part in PARTS and leaf != "num_batches_tracked":
            name = f"{PARTS[part]}.{leaf.replace('running_var', 'running_variance')}"
            state[name] = value.reshape(state[name].shape)
    ours.load_state_dict(state)
    return ours.eval()


@pytest.mark.parametrize(
    ("kind", "position"), [(None, "none"), ("rotary", "rotary"), ("relative", "transformer-xl")]
)
def test_the_conformer_is_that_of_hugging_face(kind, position):
    dim, hidden = 2 * H * 7, 59  # rotary turns pairs, so a head cannot have a prime width
    theirs, code = conformer_of_hugging_face(kind, dim, hidden)
    config = replace(
        CONFIG,
        dim=dim,
        attention=AttentionConfig(heads=H),
        feedforward=FeedForwardConfig(kind="silu", hidden=hidden),
        convolution=ConvolutionConfig(width=WIDTH, norm=NormConfig("batch")),
    )
    ours, scheme = copied(theirs, BLOCKS["conformer"](config)), make_position(position, dim, H, T)
    if kind == "relative":
        parts = ("linear_pos.weight", "pos_bias_u", "pos_bias_v")
        names = ("to_r.weight", "content", "distance")
        weights = theirs.self_attn.state_dict()
        scheme.load_state_dict({n: weights[part] for n, part in zip(names, parts, strict=True)})
    x, layout = torch.randn(B, T, dim, requires_grad=True), Layout.padded(LENGTHS)
    answer = ours(x, layout=layout, mask=everything, position=scheme)[layout.real]
    rows = [x[[b], :length] for b, length in enumerate(LENGTHS) if length]  # it leaks from padding
    expected = torch.cat([theirs(row, relative_position_embeddings=code(row))[0] for row in rows])
    torch.testing.assert_close(answer, expected, **CLOSE)
    push = torch.randn_like(answer)
    mine, other = (torch.autograd.grad(y, x, push)[0] for y in (answer, expected))
    torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-4)


# The Branchformers


class Faint(nn.Module):
    """Stands where dropout does, and leaves the same share every time."""

    def __init__(self, share):
        super().__init__()
        self.share = share

    def forward(self, x):
        return self.share * x


def linear(x, w, part):
    return x @ w[f"{part}.weight"].T + w[f"{part}.bias"]


def normalised(x, w, part):
    x = x - x.mean(-1, keepdim=True)
    x = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return x * w[f"{part}.weight"] + w[f"{part}.bias"]


def attended(x, w):
    q, k, v = (linear(x, w, f"attention.{to}").split(K, dim=-1) for to in ("to_q", "to_k", "to_v"))
    heads = [(q[h] @ k[h].T / math.sqrt(K)).softmax(-1) @ v[h] for h in range(H)]
    return linear(torch.cat(heads, dim=-1), w, "attention.to_out")


def slid(x, w, part):
    """y[t] = b + Σᵢ w[i] x[t + i - width // 2], and nothing beyond the ends."""
    answers = []
    for t in range(len(x)):
        near = [(i, t + i - WIDTH // 2) for i in range(WIDTH)]
        heard = [w[f"{part}.weight"][:, 0, i] * x[at] for i, at in near if 0 <= at < len(x)]
        answers.append(sum(heard, start=w[f"{part}.bias"]))
    return torch.stack(answers)


def gated(x, w):
    z = linear(x, w, "gate.widen")
    z = z * (1 + torch.erf(z / math.sqrt(2))) / 2
    gate = slid(normalised(z[:, HALF:], w, "gate.norm"), w, "gate.depthwise")
    return linear(0.6 * z[:, :HALF] * gate, w, "gate.narrow")


def branches(x, w):
    far, near = attended(normalised(x, w, "attention_norm"), w), normalised(x, w, "gate_norm")
    return 0.7 * torch.cat([far, gated(near, w)], dim=-1)


def with_half_a_net(x, w, which):
    z = linear(normalised(x, w, f"{which}_residual.before"), w, f"{which}_feedforward.widen")
    return x + linear(z * z.sigmoid(), w, f"{which}_feedforward.narrow") / 2


def branchformer(x, w):
    """Peng et al., 2022, section 3: concatenation as the merge."""
    return normalised(x + 0.7 * linear(branches(x, w), w, "merge"), w, "norm")


def e_branchformer(x, w):
    """Kim et al., 2022, sections 2 and 3: depthwise convolution in the merge, two half nets."""
    x = with_half_a_net(x, w, "first")
    both = branches(x, w)
    x = x + 0.7 * linear(both + slid(both, w, "merge_depthwise"), w, "merge")
    return normalised(with_half_a_net(x, w, "last"), w, "norm")


@pytest.mark.parametrize(
    ("name", "formula"), [("branchformer", branchformer), ("e-branchformer", e_branchformer)]
)
def test_branches_are_those_of_the_papers_dropout_in_its_places(name, formula):
    block, layout = randomised(BLOCKS[name](CONFIG)), Layout.padded(LENGTHS)
    block.dropout, block.gate.dropout = Faint(0.7), Faint(0.6)
    x, w = torch.randn(B, T, D), block.state_dict()
    answer = block(x, layout=layout, mask=everything)[layout.real]
    by_hand = [formula(x[b, :length], w) for b, length in enumerate(LENGTHS) if length]
    torch.testing.assert_close(answer, torch.cat(by_hand), **CLOSE)


def test_the_gate_starts_open():
    gate, layout = BLOCKS["branchformer"](CONFIG).gate, Layout.full(B, T)
    x = torch.randn(B, T, D)
    ungated = gate.narrow(nn.functional.gelu(gate.widen(x))[..., :HALF])
    torch.testing.assert_close(gate(x, layout), ungated, atol=1e-4, rtol=0)
