"""What sets one model apart from its kin is a setting: ours answer as Hugging Face's do with it."""

from functools import partial
from inspect import signature

import pytest
import torch
from hugging_face import (
    DEPTH,
    FULL,
    HIDDEN,
    MAX_LENGTH,
    PADDED,
    K,
    V,
    assert_every_weight_is_noticed,
    assert_goes_on_as_theirs,
    assert_same,
    blocks,
    continuing,
    each_padding,
    filled,
    huggingface,
    like_llama,
    named,
    parts_of_llama,
    randomised,
    stack,
)

from glassformer.config import ModelConfig
from glassformer.models.build import build_language_model

BASE, WINDOW = 500_000.0, 5
SCALING = {"factor": 8.0, "original_max_position_embeddings": 89}
FREQUENCIES = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
SLIDES_FIRST = {
    "use_sliding_window": True,
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention"],
}


def rope(kind="default", **scaling):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": BASE, **scaling}}


def rotary(**scaling):
    position = {"kind": "rotary", "base": BASE}
    return {"position": position | ({"scaling": scaling} if scaling else {})}


def mpt():
    """MPT's norms have no bias. It deals out query, key and value side by side in one weight."""
    models, heads = huggingface("mpt"), 4  # a power of two: its slopes are otherwise in disorder
    dim = heads * K
    config = models.MptConfig(
        vocab_size=V,
        d_model=dim,
        n_layers=DEPTH,
        n_heads=heads,
        max_seq_len=MAX_LENGTH,
        eos_token_id=None,
    )
    theirs = randomised(models.MptForCausalLM(config))
    norm = {"kind": "layer", "bias": False}
    shape = {"dim": dim, "hidden": 4 * dim, "heads": {"heads": heads}, "bias": False}
    decoder = stack("gelu", position="alibi", norm=norm, **shape)
    ours = build_language_model(ModelConfig(decoder=decoder, scale=False), vocabulary=V)
    inner = theirs.transformer
    outside = {"tokens.table": inner.wte, "decoder.norm": inner.norm_f}
    return filled(ours, named(outside) | blocks(inner.blocks, parts_of_mpt, "decoder.")), theirs


def parts_of_mpt(layer):
    q, k, v = layer.attn.Wqkv.weight.chunk(3)
    return {
        "attention.to_q": (q, None),
        "attention.to_k": (k, None),
        "attention.to_v": (v, None),
        "attention.to_out": layer.attn.out_proj,
        "attention_residual.before": layer.norm_1,
        "feedforward.widen": layer.ffn.up_proj,
        "feedforward.narrow": layer.ffn.down_proj,
        "feedforward_residual.before": layer.norm_2,
    }


def gemma(name, theirs=None, attention=None, order="pre", softcap=None):
    """Gemma scales its embeddings, and stores how far the scales of its norms are from one."""
    ours, model = like_llama(
        name,
        {"hidden_activation": "gelu_pytorch_tanh", **(theirs or {})},
        {"order": order, "feedforward": "geglu-tanh"},
        attention,
        outside={"scale": True, "softcap": softcap, "tie": True},
        parts=parts_of_gemma2 if order == "sandwich" else parts_of_llama,
    )
    for weight in ours.parameters():
        if weight.ndim == 1:  # it has no vectors but these
            weight.data += 1
    return ours, model


def parts_of_gemma2(layer):
    return parts_of_llama(layer) | {
        "attention_residual.after": layer.post_attention_layernorm,
        "feedforward_residual.before": layer.pre_feedforward_layernorm,
        "feedforward_residual.after": layer.post_feedforward_layernorm,
    }


def parts_of_qwen3(layer):
    return parts_of_llama(layer) | {
        "attention.q_norm": layer.self_attn.q_norm,
        "attention.k_norm": layer.self_attn.k_norm,
    }


def neox(parallel=True, fraction=0.25):
    """GPT-NeoX deals out query, key and value head by head: (H, 3, K) rows in one weight."""
    models, heads, width = huggingface("gpt_neox"), 3, 24
    dim = heads * width
    config = models.GPTNeoXConfig(
        vocab_size=V,
        hidden_size=dim,
        num_hidden_layers=DEPTH,
        num_attention_heads=heads,
        intermediate_size=HIDDEN,
        max_position_embeddings=MAX_LENGTH,
        use_parallel_residual=parallel,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.25,
        },
        bos_token_id=None,
        eos_token_id=None,
    )
    theirs = randomised(models.GPTNeoXForCausalLM(config))
    position = {"kind": "rotary", "fraction": fraction}
    decoder = stack("gelu", dim=dim, heads={"heads": heads}, position=position, parallel=parallel)
    ours = build_language_model(ModelConfig(decoder=decoder, scale=False, tie=False), vocabulary=V)
    inner = theirs.gpt_neox
    outside = {
        "tokens.table": inner.embed_in,
        "decoder.norm": inner.final_layer_norm,
        "unembed": theirs.get_output_embeddings(),
    }
    return filled(ours, named(outside) | blocks(inner.layers, parts_of_neox, "decoder.")), theirs


def parts_of_neox(layer):
    fused, heads = layer.attention.query_key_value, 3
    dealt = (part.unflatten(0, (heads, 3, -1)).unbind(1) for part in (fused.weight, fused.bias))
    q, k, v = [(w.flatten(0, 1), b.flatten()) for w, b in zip(*dealt, strict=True)]
    return {
        "attention.to_q": q,
        "attention.to_k": k,
        "attention.to_v": v,
        "attention.to_out": layer.attention.dense,
        "attention_residual.before": layer.input_layernorm,
        "feedforward.widen": layer.mlp.dense_h_to_4h,
        "feedforward.narrow": layer.mlp.dense_4h_to_h,
        "feedforward_residual.before": layer.post_attention_layernorm,
    }


GEMMA2 = {
    "sliding_window": WINDOW,
    "query_pre_attn_scalar": 3,
    "attn_logit_softcapping": 0.7,
    "final_logit_softcapping": 0.8,
    "attn_implementation": "eager",
}
OUR_GEMMA2 = {"scale": 3**-0.5, "softcap": 0.7, "window": [WINDOW, 0]}
MODELS = {
    "llama 3": partial(like_llama, "llama", rope(), rotary()),
    "llama 3.1": partial(
        like_llama,
        "llama",
        rope("llama3", **SCALING, **FREQUENCIES),
        rotary(kind="llama3", factor=8.0, trained_length=89),
    ),
    "llama with yarn": partial(
        like_llama,
        "llama",
        rope("yarn", **SCALING),
        rotary(kind="yarn", factor=8.0, trained_length=89),
    ),
    "mistral": partial(
        like_llama, "mistral", {"sliding_window": WINDOW}, attention={"window": WINDOW}
    ),
    "qwen2": partial(like_llama, "qwen2", attention={"bias": ["q", "k", "v"]}),
    "qwen2 that slides first": partial(
        like_llama,
        "qwen2",
        SLIDES_FIRST,
        attention={"bias": ["q", "k", "v"], "window": [WINDOW, 0]},
    ),
    "qwen3": partial(like_llama, "qwen3", attention={"qk_norm": True}, parts=parts_of_qwen3),
    "gemma": partial(gemma, "gemma"),
    "gemma 2": partial(gemma, "gemma2", GEMMA2, OUR_GEMMA2, order="sandwich", softcap=0.8),
    "gpt-neox": neox,
    "gpt-neox, one after the other": partial(neox, parallel=False),
    "mpt": mpt,
}
WITHOUT = {  # the setting that is needed
    "llama 3": {"ours": None},
    "llama 3.1": {"ours": rotary()},
    "llama with yarn": {"ours": rotary()},
    "mistral": {"attention": {"window": WINDOW + 1}},
    "qwen2 that slides first": {"attention": {"bias": ["q", "k", "v"], "window": [0, WINDOW]}},
    "gemma 2": {"attention": OUR_GEMMA2 | {"softcap": None}},
    "gpt-neox": {"fraction": 0.5},
}


@pytest.mark.parametrize("name", MODELS)
@each_padding
@torch.no_grad()
def test_a_language_model_answers_as_theirs_by_its_settings(name, lengths):
    pair = continuing(MODELS[name], lengths)
    assert_same(pair.answer(), pair.expected)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_it_goes_on_with_caches_as_theirs_does(name):
    assert_goes_on_as_theirs(*MODELS[name](), PADDED)


def plainly(make):
    """The same with all that is set by keyword, where it can be set otherwise."""
    function, given = getattr(make, "func", make), getattr(make, "args", ())
    names = list(signature(function).parameters)
    return partial(
        function, **dict(zip(names, given, strict=False)), **getattr(make, "keywords", {})
    )


@pytest.mark.parametrize("name", WITHOUT)
@torch.no_grad()
def test_the_setting_is_needed(name):
    pair = continuing(partial(plainly(MODELS[name]), **WITHOUT[name]), FULL)
    with pytest.raises(AssertionError, match="not close"):
        assert_same(pair.answer(), pair.expected)


@pytest.mark.usefixtures("without_shape_hook")  # only for speed: the shapes were checked above
@pytest.mark.parametrize("name", ["qwen2", "qwen3", "gemma 2", "gpt-neox", "mpt"])
@torch.no_grad()
def test_a_small_change_of_any_weight_is_noticed(name):
    assert_every_weight_is_noticed(continuing(MODELS[name], FULL))
