"""What sets one model apart from its kin is a setting: ours answer as Hugging Face's do with it."""

from functools import partial

import pytest
import torch
from hugging_face import (
    DEPTH,
    FULL,
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
    "mpt": mpt,
}
WITHOUT = {  # the setting that is needed
    "llama 3": {"ours": None},
    "llama 3.1": {"ours": rotary()},
    "llama with yarn": {"ours": rotary()},
    "mistral": {"attention": {"window": WINDOW + 1}},
    "qwen2 that slides first": {"attention": {"bias": ["q", "k", "v"], "window": [0, WINDOW]}},
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


@pytest.mark.parametrize("name", WITHOUT)
@torch.no_grad()
def test_the_setting_is_needed(name):
    make = MODELS[name]
    other = {**dict(zip(("theirs", "ours"), make.args[1:], strict=False)), **make.keywords}
    pair = continuing(partial(like_llama, make.args[0], **(other | WITHOUT[name])), FULL)
    with pytest.raises(AssertionError, match="not close"):
        assert_same(pair.answer(), pair.expected)


@pytest.mark.usefixtures("without_shape_hook")  # only for speed: the shapes were checked above
@pytest.mark.parametrize("name", ["qwen2", "mpt"])
@torch.no_grad()
def test_a_small_change_of_any_weight_is_noticed(name):
    assert_every_weight_is_noticed(continuing(MODELS[name], FULL))
