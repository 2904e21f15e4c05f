"""Eight small Hugging Face models with random weights, and ours with the same weights.

A function for each returns (ours, theirs). What is theirs is named part by part in our words, and
loaded strictly, so no weight of ours is left to chance. Nothing is downloaded: models are made from
configurations, in which the epsilon of the norms is always ours (1e-5 for LayerNorm, 1e-6 for
RMSNorm), since a StackConfig does not choose it.
"""

import math

import pytest
import torch
from torch import nn

from glassformer.config import AttentionConfig, FeedForwardConfig, ModelConfig, StackConfig
from glassformer.core.norms import LayerNorm
from glassformer.core.positions import T5, Learned
from glassformer.models.build import build_encoder, build_language_model, build_transformer
from glassformer.models.frontends import Patches, Tokens

H, K, D, HIDDEN, V = 3, 11, 33, 41, 53  # widths that differ, so that no two can be swapped
DEPTH, DECODER_DEPTH, MAX_LENGTH = 2, 3, 47
BINS, FRAMES = 13, 31  # Whisper reads twice as many frames as it makes vectors
CHANNELS, PATCH, IMAGE = 3, 5, (15, 35)


# Making both


def huggingface(name):
    return pytest.importorskip(f"transformers.models.{name}.modeling_{name}")


@torch.no_grad()
def randomised(module):
    """In evaluation, and with no weight left at zero or one, where a mistake could hide."""
    for weight in module.parameters():
        if not weight.requires_grad:  # a sinusoidal table
            continue
        if weight.ndim == 1:
            weight.add_(0.3 * torch.randn_like(weight))
        else:
            nn.init.normal_(weight, std=weight[0].numel() ** -0.5)
    return module.eval()


def stack(feedforward, *, bias=True, hidden=HIDDEN, dim=D, depth=DEPTH, heads=None, **settings):
    """Our stack without dropout; `heads` are settings of its attention."""
    return StackConfig(
        dim=dim,
        depth=depth,
        dropout=0.0,
        max_length=MAX_LENGTH,
        attention=AttentionConfig(bias=bias, **(heads or {"heads": H})),
        feedforward=FeedForwardConfig(kind=feedforward, hidden=hidden, bias=bias),
        **settings,
    )


def filled(ours, state):
    ours.load_state_dict(state)
    return ours.eval()


def named(parts, prefix=""):
    """A state from their modules, or (weight, bias), under the names of ours."""
    state = {}
    for name, part in parts.items():
        both = part if isinstance(part, tuple) else (part.weight, getattr(part, "bias", None))
        for kind, tensor in zip(("weight", "bias"), both, strict=True):
            if tensor is not None:
                state[f"{prefix}{name}.{kind}"] = tensor
    return state


def blocks(layers, parts_of_layer, prefix=""):
    """The state of all blocks, from what one layer holds."""
    states = (
        named(parts_of_layer(layer), f"{prefix}blocks.{number}.")
        for number, layer in enumerate(layers)
    )
    return {key: tensor for state in states for key, tensor in state.items()}


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


class Reader(nn.Module):
    """A frontend and an encoder: a Classifier before it pools."""

    def __init__(self, frontend, encoder):
        super().__init__()
        self.frontend, self.encoder = frontend, encoder

    def forward(self, samples, *, layout):
        x, layout = self.frontend(samples, layout)
        return self.encoder(x, layout=layout)


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


# Language models


def gpt2():
    models = huggingface("gpt2")
    config = models.GPT2Config(
        vocab_size=V,
        n_positions=MAX_LENGTH,
        n_embd=D,
        n_layer=DEPTH,
        n_head=H,
        n_inner=HIDDEN,
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


# Encoder-decoders


def t5():
    """T5's position tables stand in its first layers; ours in the stacks, which share them too.

    A StackConfig chooses neither the buckets nor, for a decoder, that all of them look back, so
    both stacks are given a position object of their own. What T5 multiplies the decoder's answer
    with, D^(-1/2), is part of the scale of our last norm.
    """
    models, dim, reach = huggingface("t5"), 37, {"buckets": 12, "max_distance": 23}
    config = models.T5Config(
        vocab_size=V,
        d_model=dim,
        d_kv=K,
        d_ff=HIDDEN,
        num_layers=DEPTH,
        num_decoder_layers=DECODER_DEPTH,
        num_heads=H,
        relative_attention_num_buckets=reach["buckets"],
        relative_attention_max_distance=reach["max_distance"],
        layer_norm_epsilon=1e-6,
    )
    theirs = randomised(models.T5ForConditionalGeneration(config))
    heads = {"heads": H, "key_width": K}
    encoder, decoder = (
        stack("relu", bias=False, dim=dim, depth=depth, heads=heads, norm="rms", position="t5")
        for depth in (DEPTH, DECODER_DEPTH)
    )
    whole = ModelConfig(encoder=encoder, decoder=decoder, scale=False, share=True)
    ours = build_transformer(whole, vocabulary=V)
    ours.encoder.position = T5(dim, H, MAX_LENGTH, width=K, **reach)
    ours.decoder.position = T5(dim, H, MAX_LENGTH, width=K, **reach, both_ways=False)
    outside = {
        "frontend.table": theirs.shared,
        "target.table": theirs.shared,
        "encoder.position.worth": buckets_of_t5(theirs.encoder),
        "decoder.position.worth": buckets_of_t5(theirs.decoder),
        "encoder.norm": theirs.encoder.final_layer_norm,
        "decoder.norm": (theirs.decoder.final_layer_norm.weight * dim**-0.5, None),
    }
    encoder_blocks = blocks(theirs.encoder.block, parts_of_t5, "encoder.")
    decoder_blocks = blocks(theirs.decoder.block, parts_of_t5, "decoder.")
    return filled(ours, named(outside) | encoder_blocks | decoder_blocks), theirs


def buckets_of_t5(stack):
    return stack.block[0].layer[0].SelfAttention.relative_attention_bias


def parts_of_t5(block):
    around, *across, think = block.layer
    parts = attention_of_t5("attention", around.SelfAttention, around.layer_norm)
    for layer in across:
        parts |= attention_of_t5("cross_attention", layer.EncDecAttention, layer.layer_norm)
    return parts | {
        "feedforward.widen": think.DenseReluDense.wi,
        "feedforward.narrow": think.DenseReluDense.wo,
        "feedforward_residual.before": think.layer_norm,
    }


def attention_of_t5(name, attention, norm):
    """T5 does not divide its scores by √K, so our queries are made that much longer."""
    return {
        f"{name}.to_q": (attention.q.weight * math.sqrt(K), None),
        f"{name}.to_k": attention.k,
        f"{name}.to_v": attention.v,
        f"{name}.to_out": attention.o,
        f"{name.removesuffix('_attention')}_residual.before": norm,
    }


def marian():
    """Marian's sinusoids have all sines before all cosines; ours alternate.

    Nothing else in a Transformer knows the order of its channels, so ours has its channels in
    another order throughout, and the whole model is compared, positions included.

    Marian's bias on the scores of tokens is zero here, as it is before training: ours has none.
    """
    models = huggingface("marian")
    config = models.MarianConfig(
        vocab_size=V,
        d_model=D,
        encoder_layers=DEPTH,
        decoder_layers=DECODER_DEPTH,
        encoder_attention_heads=H,
        decoder_attention_heads=H,
        encoder_ffn_dim=HIDDEN,
        decoder_ffn_dim=HIDDEN,
        activation_function="swish",  # as in the published ones; we say silu
        max_position_embeddings=MAX_LENGTH,
        scale_embedding=True,
        pad_token_id=0,
        decoder_start_token_id=0,
    )
    theirs = randomised(models.MarianMTModel(config))
    encoder, decoder = (
        stack("silu", depth=depth, order="post", position="sinusoidal")
        for depth in (DEPTH, DECODER_DEPTH)
    )
    ours = build_transformer(
        ModelConfig(encoder=encoder, decoder=decoder, share=True), vocabulary=V
    )
    inner = theirs.model
    state = named({"frontend.table": inner.shared, "target.table": inner.shared})
    state |= blocks(inner.encoder.layers, parts_of_marian, "encoder.")
    state |= blocks(inner.decoder.layers, parts_of_marian, "decoder.")
    return filled(ours, interleaved(state)), theirs


def parts_of_marian(layer):
    parts = attention_of_bart("attention", layer.self_attn)
    parts["attention_residual.after"] = layer.self_attn_layer_norm
    if hasattr(layer, "encoder_attn"):
        parts |= attention_of_bart("cross_attention", layer.encoder_attn)
        parts["cross_residual.after"] = layer.encoder_attn_layer_norm
    return parts | {
        "feedforward.widen": layer.fc1,
        "feedforward.narrow": layer.fc2,
        "feedforward_residual.after": layer.final_layer_norm,
    }


def attention_of_bart(name, attention):
    """The names that Marian, Whisper and many others have from BART."""
    return {
        f"{name}.to_q": attention.q_proj,
        f"{name}.to_k": attention.k_proj,
        f"{name}.to_v": attention.v_proj,
        f"{name}.to_out": attention.out_proj,
    }


def interleaved(state):
    """The same model with channels 0, h, 1, h + 1, ... of the residual stream, h the half."""
    half = (D + 1) // 2
    order = [channel // 2 + half * (channel % 2) for channel in range(D)]
    takes_channels = ("to_q", "to_k", "to_v", "widen", "table")

    def reordered(key, tensor):
        *_, part, kind = key.split(".")
        if part not in takes_channels:  # gives them, or scales them
            return tensor[order]
        return tensor[:, order] if kind == "weight" else tensor

    return {key: reordered(key, tensor) for key, tensor in state.items()}


# Sound and images


def whisper():
    """The encoder, after its two convolutions. Its sinusoids are stored, so ours are learned.

    They are no others' sinusoids: their slowest wave is 10000 times the fastest, not nearly.
    """
    models = huggingface("whisper")
    config = models.WhisperConfig(
        num_mel_bins=BINS,
        d_model=D + 1,  # its sinusoids come in pairs
        encoder_layers=DEPTH,
        encoder_attention_heads=2,
        encoder_ffn_dim=HIDDEN,
        max_source_positions=FRAMES,
    )
    theirs = randomised(models.WhisperModel(config).encoder)
    ours = build_encoder(stack("gelu", dim=D + 1, heads={"heads": 2}, position="learned"))
    ours.position = Learned(D + 1, 2, FRAMES)
    outside = {"position.table": theirs.embed_positions, "norm": theirs.layer_norm}
    return filled(ours, named(outside) | blocks(theirs.layers, parts_of_whisper)), theirs


def parts_of_whisper(layer):
    """Whisper's keys have no bias: ours is zero."""
    parts = attention_of_bart("attention", layer.self_attn)
    return parts | {
        "attention.to_k": (layer.self_attn.k_proj.weight, torch.zeros(D + 1)),
        "attention_residual.before": layer.self_attn_layer_norm,
        "feedforward.widen": layer.fc1,
        "feedforward.narrow": layer.fc2,
        "feedforward_residual.before": layer.final_layer_norm,
    }


def vit():
    """ViT gives its first vector a place as well; ours is their sum."""
    models = huggingface("vit")
    config = models.ViTConfig(
        hidden_size=D,
        num_hidden_layers=DEPTH,
        num_attention_heads=H,
        intermediate_size=HIDDEN,
        image_size=IMAGE,
        patch_size=PATCH,
        num_channels=CHANNELS,
        layer_norm_eps=1e-5,  # its own is 1e-12
    )
    theirs = randomised(models.ViTModel(config, add_pooling_layer=False))
    frontend = Patches(CHANNELS, D, size=PATCH, image=IMAGE, first=True)
    ours = Reader(frontend, build_encoder(stack("gelu", position="none")))
    first, places = theirs.embeddings.position_embeddings[0].split([1, len(frontend.table)])
    state = {
        "frontend.first": theirs.embeddings.cls_token[0, 0] + first[0],
        "frontend.table": places,
    }
    outside = {
        "frontend.to_vector": theirs.embeddings.patch_embeddings.projection,
        "encoder.norm": theirs.layernorm,
    }
    layers = blocks(theirs.layers, parts_of_vit, "encoder.")
    return filled(ours, state | named(outside) | layers), theirs


def parts_of_vit(layer):
    return {
        "attention.to_q": layer.attention.q_proj,
        "attention.to_k": layer.attention.k_proj,
        "attention.to_v": layer.attention.v_proj,
        "attention.to_out": layer.attention.o_proj,
        "attention_residual.before": layer.layernorm_before,
        "feedforward.widen": layer.mlp.fc1,
        "feedforward.narrow": layer.mlp.fc2,
        "feedforward_residual.before": layer.layernorm_after,
    }
