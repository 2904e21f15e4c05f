"""Same weights, same inputs: the answers and gradients of torch.nn and of Hugging Face's models."""

import math

import pytest
import torch
from torch import nn

from glassformer.core.attention import Heads, MultiHeadAttention
from glassformer.core.layout import Layout
from glassformer.core.masks import causal, everything
from glassformer.core.positions import T5, Alibi, Linear, Llama3, Ntk, Rotary, Yarn

B, H, T, S, K, D = 2, 3, 5, 7, 11, 37  # all different and prime, so a swapped axis cannot hide
MEMORY_DIM, LONG = 29, 31
PAIRS = 2 * K  # rotary turns pairs of channels, so there a head cannot have a prime width
CLOSE = {"atol": 1e-5, "rtol": 1e-5}

each_padding = pytest.mark.parametrize(
    "lengths", [[LONG, LONG], [19, LONG]], ids=["full", "padded"]
)


# Comparing


def layout_of(lengths, longest):
    """Full rows say so, as they do in the models."""
    full = min(lengths) == longest
    return Layout.full(B, longest) if full else Layout.padded(lengths, longest=longest)


def real(lengths, longest):
    return torch.tensor([[t < length for t in range(longest)] for length in lengths])


def additive(mask, lengths):
    """The mask that Hugging Face's modules take: the lowest number on what may not be seen."""
    ahead = torch.ones(LONG, LONG, dtype=torch.bool).triu(1)
    hidden = ~real(lengths, LONG)[:, None, :] | (ahead & (mask is causal))  # (B, T, S)
    return torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)[:, None]


def randomised(module):
    """In evaluation, and with no weight left at zero or one, where a mistake could hide."""
    for weight in module.parameters():
        nn.init.normal_(weight, std=min(weight.shape) ** -0.5)  # scores of about one
    return module.eval()


def assert_same(ours, theirs, where, *inputs):
    """The same answers where `where` is True, and the same gradients for the inputs."""
    sides = []
    for function in (ours, theirs):
        leaves = [x.clone().requires_grad_() for x in inputs]
        answer = function(*leaves)[where]
        answer.backward(torch.randn(answer.shape, generator=torch.Generator().manual_seed(1)))
        sides.append([answer, *(leaf.grad for leaf in leaves)])
    for mine, other in zip(*sides, strict=True):
        assert other.abs().max() > 0.1  # two silences would agree on anything
        torch.testing.assert_close(mine, other, **CLOSE)


def assert_same_attention(ours, theirs, lengths, *, mask=everything, position=None):
    """`theirs(x, hidden)` answers as our attention does, with the mask said in its own way."""
    layout, hidden = layout_of(lengths, LONG), additive(mask, lengths)
    assert_same(
        lambda x: ours(x, mask=mask, position=position, layout=layout),
        lambda x: theirs(x, hidden),
        real(lengths, LONG),
        torch.randn(B, LONG, ours.to_q.in_features),
    )


def attention_with(projections, *shape, **options):
    """Our attention of this shape, filled with (weight, bias) for to_q, to_k, to_v and to_out."""
    biased = projections[0][1] is not None
    ours = MultiHeadAttention(*shape, bias=biased, **options).eval()
    names = ("to_q", "to_k", "to_v", "to_out")
    state = {f"{n}.weight": weight for n, (weight, _) in zip(names, projections, strict=True)}
    if biased:
        state |= {f"{n}.bias": bias for n, (_, bias) in zip(names, projections, strict=True)}
    ours.load_state_dict(state)
    return ours


def linear(module):
    return module.weight, module.bias


def huggingface(name):
    return pytest.importorskip(f"transformers.models.{name}.modeling_{name}")


# torch.nn


def projections_of_torch(theirs, of=lambda parameter: parameter):
    """(weight, bias) four times; torch fuses the first three unless their widths differ."""
    if theirs.in_proj_weight is None:
        weights = map(of, (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight))
    else:
        weights = of(theirs.in_proj_weight).chunk(3)
    biased = theirs.in_proj_bias is not None
    biases = of(theirs.in_proj_bias).chunk(3) if biased else (None, None, None)
    out = of(theirs.out_proj.weight), of(theirs.out_proj.bias) if biased else None
    return [*zip(weights, biases, strict=True), out]


@pytest.mark.parametrize("rows", [([T, T], [S, S]), ([2, T], [S, 3])], ids=["full", "padded"])
@pytest.mark.parametrize("mask", [everything, causal], ids=str)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("memory_dim", [None, H * K, MEMORY_DIM], ids=["self", "cross", "kdim"])
def test_attention_is_that_of_torch_to_the_gradient_of_every_weight(memory_dim, bias, mask, rows):
    options = {"bias": bias, "kdim": memory_dim, "vdim": memory_dim}
    theirs = randomised(nn.MultiheadAttention(H * K, H, batch_first=True, **options))
    ours = attention_with(projections_of_torch(theirs), H * K, H, memory_dim=memory_dim)
    inputs, layouts = [torch.randn(B, T, H * K)], {"layout": layout_of(rows[0], T)}
    padding = ~real(rows[0], T)
    if memory_dim is not None:
        inputs.append(torch.randn(B, S, memory_dim))
        layouts["memory_layout"] = layout_of(rows[1], S)
        padding = ~real(rows[1], S)
    ahead = torch.ones(T, padding.shape[1], dtype=torch.bool).triu(1) if mask is causal else None

    def by_theirs(x, memory=None):
        source = x if memory is None else memory
        return theirs(x, source, source, key_padding_mask=padding, attn_mask=ahead)[0]

    assert_same(lambda *xs: ours(*xs, mask=mask, **layouts), by_theirs, real(rows[0], T), *inputs)
    expected = projections_of_torch(theirs, of=lambda parameter: parameter.grad)
    for to, gradients in zip((ours.to_q, ours.to_k, ours.to_v, ours.to_out), expected, strict=True):
        torch.testing.assert_close(to.weight.grad, gradients[0], **CLOSE)
        if bias:
            torch.testing.assert_close(to.bias.grad, gradients[1], **CLOSE)


# Hugging Face


@each_padding
def test_attention_is_that_of_bert(lengths):
    bert = huggingface("bert")
    config = bert.BertConfig(hidden_size=H * K, num_attention_heads=H, attn_implementation="eager")
    theirs = randomised(bert.BertAttention(config))
    parts = theirs.self.query, theirs.self.key, theirs.self.value, theirs.output.dense
    ours = attention_with([linear(part) for part in parts], H * K, H)
    assert_same_attention(
        ours, lambda x, hidden: theirs.output.dense(theirs.self(x, hidden)[0]), lengths
    )


def projections_of_gpt2(theirs):
    """GPT-2 fuses queries, keys and values side by side, in weights that lie on their side."""
    fused = zip(theirs.c_attn.weight.chunk(3, dim=1), theirs.c_attn.bias.chunk(3), strict=True)
    return [(weight.T, bias) for weight, bias in (*fused, linear(theirs.c_proj))]


@each_padding
def test_attention_is_that_of_gpt2(lengths):
    gpt2 = huggingface("gpt2")
    config = gpt2.GPT2Config(n_embd=H * K, n_head=H, attn_implementation="eager")
    theirs = randomised(gpt2.GPT2Attention(config, layer_idx=0))
    ours = attention_with(projections_of_gpt2(theirs), H * K, H)
    assert_same_attention(
        ours, lambda x, hidden: theirs(x, attention_mask=hidden)[0], lengths, mask=causal
    )


def yarn(factor, trained_length, **more):
    return {"factor": factor, "original_max_position_embeddings": trained_length, **more}


def llama3(factor, trained_length, *, high, low):
    turns = {"high_freq_factor": high, "low_freq_factor": low}
    return yarn(factor, trained_length, **turns)


def llama_config(kind, base=10_000.0, width=PAIRS, **scaling):
    return huggingface("llama").LlamaConfig(
        hidden_size=6 * K,  # it insists on a multiple of the heads
        num_attention_heads=6,
        num_key_value_heads=H,
        head_dim=width,
        attention_bias=True,
        attn_implementation="eager",
        rope_parameters={"rope_type": kind, "rope_theta": base, **scaling},
    )


@each_padding
@pytest.mark.parametrize(
    ("kind", "scaling", "options"),
    [("default", None, {}), ("yarn", Yarn(5.0, 17), yarn(5.0, 17))],
    ids=["plain", "yarn"],
)
def test_grouped_heads_with_rotary_positions_are_those_of_llama(kind, scaling, options, lengths):
    llama, config = huggingface("llama"), llama_config(kind, **options)
    theirs = randomised(llama.LlamaAttention(config, layer_idx=0))
    parts = theirs.q_proj, theirs.k_proj, theirs.v_proj, theirs.o_proj
    heads = Heads(6, kv_heads=H, key_width=PAIRS)
    ours = attention_with([linear(part) for part in parts], 6 * K, heads)
    position = Rotary(6 * K, 6, LONG, width=PAIRS, scaling=scaling)
    angles = llama.LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(LONG)[None])
    assert_same_attention(
        ours,
        lambda x, hidden: theirs(x, angles, hidden)[0],
        lengths,
        mask=causal,
        position=position,
    )


def projections_of_t5(theirs):
    """T5 does not divide its scores by √K, so our queries are made that much longer."""
    q, k, v, out = theirs.q.weight, theirs.k.weight, theirs.v.weight, theirs.o.weight
    return [(q * math.sqrt(theirs.key_value_proj_dim), None), (k, None), (v, None), (out, None)]


@each_padding
@pytest.mark.parametrize("mask", [everything, causal], ids=["encoder", "decoder"])
def test_attention_with_buckets_of_distances_is_that_of_t5(mask, lengths):
    t5, decoder = huggingface("t5"), mask is causal
    config = t5.T5Config(
        d_model=D,
        d_kv=K,
        num_heads=H,
        relative_attention_num_buckets=12,
        relative_attention_max_distance=23,  # below LONG, so that every bucket is used
        is_decoder=decoder,
        attn_implementation="eager",
    )
    theirs = randomised(t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0))
    ours = attention_with(projections_of_t5(theirs), D, Heads(H, key_width=K))
    position = T5(D, H, LONG, width=K, buckets=12, max_distance=23, both_ways=not decoder)
    position.load_state_dict({"worth.weight": theirs.relative_attention_bias.weight})
    assert_same_attention(
        ours, lambda x, hidden: theirs(x, mask=hidden)[0], lengths, mask=mask, position=position
    )
    expected = theirs.relative_attention_bias.weight.grad
    torch.testing.assert_close(position.worth.weight.grad, expected, **CLOSE)


def projections_of_bloom(theirs):
    """BLOOM deals out query, key and value head by head: (H, 3, K) rows in one weight."""
    weight, bias = linear(theirs.query_key_value)
    weights = weight.unflatten(0, (theirs.num_heads, 3, -1)).unbind(1)  # each (H, K, D)
    biases = bias.unflatten(0, (theirs.num_heads, 3, -1)).unbind(1)  # each (H, K)
    fused = [(w.flatten(0, 1), b.flatten()) for w, b in zip(weights, biases, strict=True)]
    return [*fused, linear(theirs.dense)]


@each_padding
@pytest.mark.parametrize("heads", [4, 7], ids="{} heads".format)
def test_attention_with_a_price_on_distance_is_that_of_bloom(heads, lengths):
    bloom, dim = huggingface("bloom"), heads * K
    theirs = randomised(bloom.BloomAttention(bloom.BloomConfig(hidden_size=dim, n_head=heads), 0))
    ours = attention_with(projections_of_bloom(theirs), dim, heads)
    prices = bloom.build_alibi_tensor(real(lengths, LONG).long(), heads, torch.float32)
    assert_same_attention(
        ours,
        lambda x, hidden: theirs(x, torch.zeros_like(x), prices, hidden)[0],
        lengths,
        mask=causal,
        position=Alibi(dim, heads, LONG),
    )


# Rotary scaling


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        ("linear", Linear(3.0), {"factor": 3.0}),
        ("yarn", Yarn(0.5, 509), yarn(0.5, 509)),
        ("yarn", Yarn(7.0, 2039), yarn(7.0, 2039)),
        ("yarn", Yarn(5.0, 4099, 13.0, 2.0), yarn(5.0, 4099, beta_fast=13.0, beta_slow=2.0)),
        ("llama3", Llama3(8.0, 2039), llama3(8.0, 2039, high=4.0, low=1.0)),
        ("llama3", Llama3(5.0, 4099, 13.0, 2.0), llama3(5.0, 4099, high=13.0, low=2.0)),
    ],
    ids=str,
)
def test_stretched_frequencies_are_those_of_hugging_face(kind, ours, theirs, base):
    functions = pytest.importorskip("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS
    config = llama_config(kind, base=base, width=94, **theirs)
    frequencies, sharpness = functions[kind](config, torch.device("cpu"))
    torch.testing.assert_close(ours.frequencies(94, base, torch.device("cpu")), frequencies)
    assert ours.sharpness == pytest.approx(sharpness)


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize("scaling", [Linear(1.0), Ntk(3.0), Yarn(7.0, 2039), Llama3(8.0, 2039)])
def test_frequencies_are_rounded_once_from_float64(scaling, base):
    exact = scaling.exact(94, base, torch.device("cpu"))
    assert exact.dtype == torch.float64
    assert torch.equal(scaling.frequencies(94, base, torch.device("cpu")), exact.float())
    if scaling == Linear(1.0):
        powers = torch.tensor([base ** (-j / 94) for j in range(0, 94, 2)], dtype=torch.float64)
        torch.testing.assert_close(exact, powers, rtol=1e-14, atol=0)


def test_ntk_keeps_the_fastest_pair_and_slows_the_slowest_by_the_whole_factor():
    base, factor = 10_000.0, 7.0
    speed = Ntk(factor).frequencies(PAIRS, base, torch.device("cpu"))
    larger = base * factor ** (PAIRS / (PAIRS - 2))
    expected = torch.tensor([larger ** (-2 * j / PAIRS) for j in range(K)])
    torch.testing.assert_close(speed, expected)
    assert speed[0].item() == 1
    assert speed[-1].item() == pytest.approx(base ** -((PAIRS - 2) / PAIRS) / factor)
