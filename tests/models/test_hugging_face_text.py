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
    assert_same,
    blocks,
    each_padding,
    filled,
    huggingface,
    layout_of,
    named,
    randomised,
    seen,
    stack,
    tokens,
)
from torch import nn

from glassformer.config import ModelConfig
from glassformer.core.layout import Layout
from glassformer.core.norms import LayerNorm
from glassformer.core.positions import Learned
from glassformer.models.build import build_encoder, build_language_model
from glassformer.models.frontends import Tokens

STEPS = 7


# BERT


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
        self.kinds, self.norm = nn.Embedding(2, D), LayerNorm(D)

    def forward(self, samples, layout):
        tokens, kinds = samples.unbind(-1)
        x, layout = self.tokens(tokens, layout)
        return self.norm(self.places.embed(x, layout) + self.kinds(kinds), layout), layout


def bert():
    models = huggingface("bert")
    config = models.BertConfig(
        vocab_size=V,
        hidden_size=D,
        num_hidden_layers=DEPTH,
        num_attention_heads=H,
        intermediate_size=HIDDEN,
        max_position_embeddings=MAX_LENGTH,
        layer_norm_eps=1e-5,  # its own is 1e-12
    )
    theirs = randomised(models.BertModel(config, add_pooling_layer=False))
    ours = Reader(BertFrontend(), build_encoder(stack("gelu", order="post", position="none")))
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


def reading(lengths):
    ours, theirs = bert()
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
    models = huggingface("llama")
    dim, width = 6 * K, 2 * K + 4  # heads wider than their share, and even, as rotary wants them
    config = models.LlamaConfig(
        vocab_size=V,
        hidden_size=dim,
        num_hidden_layers=DEPTH,
        num_attention_heads=6,
        num_key_value_heads=H,
        head_dim=width,
        intermediate_size=HIDDEN,
        rms_norm_eps=1e-6,
        eos_token_id=None,
    )
    theirs = randomised(models.LlamaForCausalLM(config))
    heads = {"heads": 6, "groups": H, "key_width": width}
    decoder = stack("swiglu", bias=False, dim=dim, heads=heads, norm="rms", position="rotary")
    ours = build_language_model(ModelConfig(decoder=decoder, scale=False, tie=False), vocabulary=V)
    inner = theirs.model
    outside = {
        "tokens.table": inner.embed_tokens,
        "decoder.norm": inner.norm,
        "unembed": theirs.lm_head,
    }
    return filled(ours, named(outside) | blocks(inner.layers, parts_of_llama, "decoder.")), theirs


def parts_of_llama(layer):
    return {
        "attention.to_q": layer.self_attn.q_proj,
        "attention.to_k": layer.self_attn.k_proj,
        "attention.to_v": layer.self_attn.v_proj,
        "attention.to_out": layer.self_attn.o_proj,
        "attention_residual.before": layer.input_layernorm,
        "feedforward.gate": layer.mlp.gate_proj,
        "feedforward.widen": layer.mlp.up_proj,
        "feedforward.narrow": layer.mlp.down_proj,
        "feedforward_residual.before": layer.post_attention_layernorm,
    }


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


def continuing(make, lengths):
    ours, theirs = make()
    ids, layout = tokens(), layout_of(lengths)
    expected, real = theirs(ids, attention_mask=seen(layout)).logits, seen(layout).bool()
    return Pair(ours, lambda: ours(ids, layout=layout)[real], expected[real])


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


@pytest.mark.usefixtures("without_shape_hook")  # only for speed: the shapes were checked above
@pytest.mark.parametrize("name", PAIRS)
@torch.no_grad()
def test_a_small_change_of_any_weight_is_noticed(name):
    assert_every_weight_is_noticed(PAIRS[name](FULL))


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@each_padding
@torch.no_grad()
def test_a_language_model_goes_on_with_caches_as_theirs_does(name, lengths):
    ours, theirs = LANGUAGE_MODELS[name]()
    ids, layout = tokens(), layout_of(lengths)
    on_the_right = torch.stack(  # theirs goes on where a row ends, so it has its padding before
        [row.roll(S - length) for row, length in zip(ids, lengths, strict=True)]
    )
    expected = theirs.generate(
        on_the_right,
        attention_mask=seen(layout).flip(1),
        do_sample=False,
        max_new_tokens=STEPS,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    caches = ours.decoder.new_caches()
    scores = [ours(ids, layout=layout, caches=caches)[range(B), [n - 1 for n in lengths]]]
    for _ in range(STEPS - 1):
        best = scores[-1].argmax(dim=-1, keepdim=True)  # (B, 1)
        scores.append(ours(best, layout=Layout.full(B, 1), caches=caches)[:, 0])
    assert_same(torch.stack(scores), torch.stack(expected.logits))
    chosen = torch.stack(scores, dim=1).argmax(dim=-1)  # (B, STEPS)
    assert chosen.tolist() == expected.sequences[:, S:].tolist()
