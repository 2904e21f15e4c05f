"""BERT, GPT-2, Llama and BLOOM: our models answer as Hugging Face's do with the same weights."""

from functools import partial

import pytest
import torch
from hugging_face import (
    DEPTH,
    FULL,
    HIDDEN,
    MAX_LENGTH,
    B,
    D,
    H,
    K,
    Pair,
    Reader,
    S,
    V,
    assert_every_weight_is_noticed,
    assert_goes_on_as_theirs,
    assert_same,
    blocks,
    continuing,
    each_padding,
    filled,
    huggingface,
    layout_of,
    like_llama,
    named,
    randomised,
    seen,
    stack,
    tokens,
)
from torch import nn

from glassformer.config import ModelConfig
from glassformer.core.norms import LayerNorm
from glassformer.core.positions import Learned
from glassformer.models.build import build_encoder, build_language_model
from glassformer.models.frontends import Tokens

# BERT

EPSILON = 1e-12


class BertFrontend(nn.Module):
    """BERT adds three embeddings and normalises the sum, before its first block.

    Our encoder adds positions but has no norm between those and its blocks. So the words, the
    places, the kinds of token (first or second sentence) and their norm make a frontend of its own,
    of our parts, and the encoder has position "none".
    """

    def __init__(self):
        super().__init__()
        self.dim = D
        self.tokens, self.places = Tokens(V, D, scale=False), Learned(D, H, MAX_LENGTH)
        self.kinds, self.norm = nn.Embedding(2, D), LayerNorm(D, eps=EPSILON)

    def forward(self, samples, layout):
        tokens, kinds = samples.unbind(-1)
        x, layout = self.tokens(tokens, layout)
        return self.norm(self.places.embed(x, layout) + self.kinds(kinds), layout), layout


def bert(epsilon=EPSILON, size=1.0):
    """With all shifts and scales but the last of this size, small vectors come to its norms."""
    models = huggingface("bert")
    config = models.BertConfig(
        vocab_size=V,
        hidden_size=D,
        num_hidden_layers=DEPTH,
        num_attention_heads=H,
        intermediate_size=HIDDEN,
        max_position_embeddings=MAX_LENGTH,
        layer_norm_eps=EPSILON,
    )
    theirs = randomised(models.BertModel(config, add_pooling_layer=False))
    last = {id(weight) for weight in theirs.encoder.layer[-1].output.LayerNorm.parameters()}
    for weight in theirs.parameters():
        if weight.ndim == 1 and id(weight) not in last:
            weight.mul_(size)
    norm = {"kind": "layer", "epsilon": epsilon}
    encoder = build_encoder(stack("gelu", order="post", norm=norm, position="none"))
    ours = Reader(BertFrontend(), encoder)
    embeddings = {
        "tokens.table": theirs.embeddings.word_embeddings,
        "places.table": theirs.embeddings.position_embeddings,
        "kinds": theirs.embeddings.token_type_embeddings,
        "norm": theirs.embeddings.LayerNorm,
    }
    layers = blocks(theirs.encoder.layer, parts_of_bert, "encoder.")
    return filled(ours, named(embeddings, "frontend.") | layers), theirs


def parts_of_bert(layer):
    return {
        "attention.to_q": layer.attention.self.query,
        "attention.to_k": layer.attention.self.key,
        "attention.to_v": layer.attention.self.value,
        "attention.to_out": layer.attention.output.dense,
        "attention_residual.after": layer.attention.output.LayerNorm,
        "feedforward.widen": layer.intermediate.dense,
        "feedforward.narrow": layer.output.dense,
        "feedforward_residual.after": layer.output.LayerNorm,
    }


def reading(lengths, **settings):
    ours, theirs = bert(**settings)
    ids, kinds, layout = tokens(), torch.randint(2, (B, S)), layout_of(lengths)
    expected = theirs(ids, attention_mask=seen(layout), token_type_ids=kinds).last_hidden_state
    samples, real = torch.stack([ids, kinds], dim=-1), seen(layout).bool()
    return Pair(ours, lambda: ours(samples, layout=layout)[real], expected[real])


# GPT-2, Llama, BLOOM


def gpt2():
    models = huggingface("gpt2")
    config = models.GPT2Config(
        vocab_size=V,
        n_positions=MAX_LENGTH,
        n_embd=D,
        n_layer=DEPTH,
        n_head=H,
        n_inner=HIDDEN,
        bos_token_id=None,
        eos_token_id=None,
    )
    theirs = randomised(models.GPT2LMHeadModel(config))
    decoder = stack("gelu-tanh", position="learned")
    ours = build_language_model(ModelConfig(decoder=decoder, scale=False), vocabulary=V)
    inner = theirs.transformer
    outside = {
        "tokens.table": inner.wte,
        "decoder.position.table": inner.wpe,
        "decoder.norm": inner.ln_f,
    }
    return filled(ours, named(outside) | blocks(inner.h, parts_of_gpt2, "decoder.")), theirs


def parts_of_gpt2(layer):
    """GPT-2's weights lie on their side, and those of queries, keys and values side by side."""
    fused = layer.attn.c_attn
    q, k, v = zip(fused.weight.T.chunk(3), fused.bias.chunk(3), strict=True)
    return {
        "attention.to_q": q,
        "attention.to_k": k,
        "attention.to_v": v,
        "attention.to_out": (layer.attn.c_proj.weight.T, layer.attn.c_proj.bias),
        "attention_residual.before": layer.ln_1,
        "feedforward.widen": (layer.mlp.c_fc.weight.T, layer.mlp.c_fc.bias),
        "feedforward.narrow": (layer.mlp.c_proj.weight.T, layer.mlp.c_proj.bias),
        "feedforward_residual.before": layer.ln_2,
    }


def llama():
    return like_llama("llama")


def bloom():
    """BLOOM normalises its embeddings, to which no position is added.

    What enters is then a function of the token alone, so our table holds vectors that are
    normalised already. The answer is scored with the raw ones, so ours is not tied.
    """
    models, heads = huggingface("bloom"), 7  # no power of two: the slopes are filled up
    dim = heads * K
    config = models.BloomConfig(
        vocab_size=V, hidden_size=dim, n_layer=DEPTH, n_head=heads, eos_token_id=None
    )
    theirs = randomised(models.BloomForCausalLM(config))
    decoder = stack("gelu-tanh", hidden=4 * dim, dim=dim, heads={"heads": heads}, position="alibi")
    ours = build_language_model(ModelConfig(decoder=decoder, scale=False, tie=False), vocabulary=V)
    inner = theirs.transformer
    outside = {
        "tokens.table": (inner.word_embeddings_layernorm(inner.word_embeddings.weight), None),
        "decoder.norm": inner.ln_f,
        "unembed": inner.word_embeddings,
    }
    return filled(ours, named(outside) | blocks(inner.h, parts_of_bloom, "decoder.")), theirs


def parts_of_bloom(layer):
    """BLOOM deals out query, key and value head by head: (H, 3, K) rows in one weight."""
    fused, heads = layer.self_attention.query_key_value, layer.self_attention.num_heads
    dealt = (part.unflatten(0, (heads, 3, -1)).unbind(1) for part in (fused.weight, fused.bias))
    q, k, v = [(w.flatten(0, 1), b.flatten()) for w, b in zip(*dealt, strict=True)]
    return {
        "attention.to_q": q,
        "attention.to_k": k,
        "attention.to_v": v,
        "attention.to_out": layer.self_attention.dense,
        "attention_residual.before": layer.input_layernorm,
        "feedforward.widen": layer.mlp.dense_h_to_4h,
        "feedforward.narrow": layer.mlp.dense_4h_to_h,
        "feedforward_residual.before": layer.post_attention_layernorm,
    }


# The promises


LANGUAGE_MODELS = {"gpt2": gpt2, "llama": llama, "bloom": bloom}
PAIRS = {
    "bert": reading,
    **{name: partial(continuing, make) for name, make in LANGUAGE_MODELS.items()},
}


@pytest.mark.parametrize("name", PAIRS)
@each_padding
@torch.no_grad()
def test_a_whole_model_answers_as_theirs_with_the_same_weights(name, lengths):
    pair = PAIRS[name](lengths)
    assert_same(pair.answer(), pair.expected)


@torch.no_grad()
def test_small_vectors_need_the_epsilon_of_bert():
    pair = reading(FULL, size=1e-3)
    assert_same(pair.answer(), pair.expected)
    pair = reading(FULL, size=1e-3, epsilon=1e-5)  # that of torch
    with pytest.raises(AssertionError, match="not close"):
        assert_same(pair.answer(), pair.expected)


@pytest.mark.usefixtures("without_shape_hook")  # only for speed: the shapes were checked above
@pytest.mark.parametrize("name", PAIRS)
@torch.no_grad()
def test_a_small_change_of_any_weight_is_noticed(name):
    assert_every_weight_is_noticed(PAIRS[name](FULL))


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@each_padding
@torch.no_grad()
def test_a_language_model_goes_on_with_caches_as_theirs_does(name, lengths):
    assert_goes_on_as_theirs(*LANGUAGE_MODELS[name](), lengths)
