"""T5, its v1.1, Marian, Whisper and ViT: ours answer as Hugging Face's do with the same weights."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
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
from glassformer.models.build import build_encoder, build_transformer
from glassformer.models.frontends import Patches

DECODER_DEPTH, T = 3, 29
BINS = 13
CHANNELS, PATCH, IMAGE = 3, 5, (15, 35)


# T5 and Marian


def t5(feedforward="relu", **theirs):
    """T5's position tables stand in its first layers; ours in the stacks, which share them too.

    What T5 multiplies the decoder's answer with, D^(-1/2), is part of the scale of our last norm.
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
        **theirs,
    )
    theirs, tied = models.T5ForConditionalGeneration(config), config.scale_decoder_outputs
    if not tied:  # as the published v1.1 is; one made from a configuration is tied nevertheless
        theirs.lm_head.weight = nn.Parameter(torch.empty(V, dim))
    randomised(theirs)
    shape = {"dim": dim, "heads": {"heads": H, "key_width": K}, "bias": False}
    parts = {"norm": "rms", "position": {"kind": "t5", **reach}}
    encoder, decoder = (
        stack(feedforward, depth=depth, **shape, **parts) for depth in (DEPTH, DECODER_DEPTH)
    )
    whole = ModelConfig(encoder=encoder, decoder=decoder, scale=False, share=True, tie=tied)
    ours = build_transformer(whole, vocabulary=V)
    outside = {
        "frontend.table": theirs.shared,
        "target.table": theirs.shared,
        "encoder.position.worth": buckets_of_t5(theirs.encoder),
        "decoder.position.worth": buckets_of_t5(theirs.decoder),
        "encoder.norm": theirs.encoder.final_layer_norm,
        "decoder.norm": (theirs.decoder.final_layer_norm.weight * dim ** (-0.5 * tied), None),
    } | ({} if tied else {"unembed": theirs.lm_head})
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
    net = think.DenseReluDense
    widens = {"feedforward.widen": net.wi} if hasattr(net, "wi") else gated_of_t5(net)
    return (
        parts
        | widens
        | {
            "feedforward.narrow": net.wo,
            "feedforward_residual.before": think.layer_norm,
        }
    )


def gated_of_t5(net):
    return {"feedforward.gate": net.wi_0, "feedforward.widen": net.wi_1}


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


def translating(make, lengths):
    ours, theirs = make()
    read, written = tokens(), tokens(T)
    source = layout_of(lengths)
    target = layout_of((T, T) if lengths == FULL else (T, 17), T)
    expected = theirs(
        input_ids=read,
        attention_mask=seen(source),
        decoder_input_ids=written,
        decoder_attention_mask=seen(target),
    ).logits
    real = seen(target).bool()
    return Pair(
        ours, lambda: ours(read, written, source=source, target=target)[real], expected[real]
    )


# Whisper's encoder and ViT: neither knows padding


def whisper():
    """The encoder, after its two convolutions.

    Its sinusoids are not quite ours (the slowest is exactly 10000 times slower than the fastest)
    and are stored like weights, so ours has them as a learned table.
    """
    models = huggingface("whisper")
    config = models.WhisperConfig(
        num_mel_bins=BINS,
        d_model=D + 1,  # its sinusoids come in pairs
        encoder_layers=DEPTH,
        encoder_attention_heads=2,
        encoder_ffn_dim=HIDDEN,
        max_source_positions=MAX_LENGTH,
    )
    theirs = randomised(models.WhisperEncoder(config))
    heads = {"heads": 2, "bias": ["q", "v", "out"]}  # its keys have none
    ours = build_encoder(stack("gelu", dim=D + 1, heads=heads, position="learned"))
    outside = {"position.table": theirs.embed_positions, "norm": theirs.layer_norm}
    return filled(ours, named(outside) | blocks(theirs.layers, parts_of_whisper)), theirs


def parts_of_whisper(layer):
    parts = attention_of_bart("attention", layer.self_attn)
    return parts | {
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
    )
    theirs = randomised(models.ViTModel(config, add_pooling_layer=False))
    frontend = Patches(CHANNELS, D, size=PATCH, image=IMAGE, first=True)
    norm = {"kind": "layer", "epsilon": config.layer_norm_eps}
    ours = Reader(frontend, build_encoder(stack("gelu", norm=norm, position="none")))
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


def listening():
    ours, theirs = whisper()
    mel = torch.randn(B, BINS, 2 * MAX_LENGTH)
    x = F.gelu(theirs.conv2(F.gelu(theirs.conv1(mel)))).mT  # (B, T, D)
    layout = Layout.full(B, MAX_LENGTH)
    return Pair(ours, lambda: ours(x, layout=layout), theirs(mel).last_hidden_state)


def looking():
    ours, theirs = vit()
    images, layout = torch.randn(B, CHANNELS, *IMAGE), Layout.full(B, 1)  # an image each
    return Pair(ours, lambda: ours(images, layout=layout), theirs(images).last_hidden_state)


# The promises


V1_1 = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
TRANSFORMERS = {"t5": t5, "t5 v1.1": partial(t5, "geglu-tanh", **V1_1), "marian": marian}
PAIRS = {
    **{name: partial(translating, make, FULL) for name, make in TRANSFORMERS.items()},
    "whisper": listening,
    "vit": looking,
}


@pytest.mark.parametrize("name", TRANSFORMERS)
@each_padding
@torch.no_grad()
def test_an_encoder_and_decoder_answer_as_theirs_with_the_same_weights(name, lengths):
    pair = translating(TRANSFORMERS[name], lengths)
    assert_same(pair.answer(), pair.expected)


@pytest.mark.parametrize("name", ["whisper", "vit"])
@torch.no_grad()
def test_sound_and_images_are_read_as_theirs_with_the_same_weights(name):
    pair = PAIRS[name]()
    assert_same(pair.answer(), pair.expected)


@pytest.mark.usefixtures("without_shape_hook")  # only for speed: the shapes were checked above
@pytest.mark.parametrize("name", PAIRS)
@torch.no_grad()
def test_a_small_change_of_any_weight_is_noticed(name):
    assert_every_weight_is_noticed(PAIRS[name]())
