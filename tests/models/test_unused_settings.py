"""Settings that do nothing are known by name: every setting of every model is varied."""

import numpy as np
import pytest
import torch

from glassformer.config import FRONTEND_NAMES, STACK_NAMES, ModelConfig, build
from glassformer.config.unused import (
    SETTINGS_OF_FRONTEND,
    SETTINGS_OF_MODEL,
    SETTINGS_OF_STACK,
    refuse_unused_of_model,
    why_unused,
)
from glassformer.config.values import merge_values
from glassformer.core.layout import Layout
from glassformer.errors import GlassformerError
from glassformer.models.build import (
    build_classifier,
    build_language_model,
    build_masked_model,
    build_transformer,
)
from glassformer.models.frontends.words import Spelling

V, B, T = 11, 3, 7
STACK = {"dim": 12, "depth": 1, "max_length": 13, "dropout": 0.1, "attention": {"heads": 3}}
STACK |= {"feedforward": {"hidden": 14}, "convolution": {"width": 3}}
STACKS = {
    "softmax": {},
    "learned": {"position": "learned"},
    "linear": {"position": "none", "attention": {"kind": "linear"}},
    "linformer": {"attention": {"kind": "linformer", "summary": 3}},
    **{block: {"block": block} for block in ("conformer", "branchformer", "e-branchformer")},
    **{kind: {"kind": kind} for kind in ("gru", "lstm", "tcn")},
}
OTHER = {  # another value for every setting of a stack
    "block": "conformer",
    "dim": 18,
    "depth": 2,
    "order": "post",
    "parallel": True,
    "norm": "rms",
    "norm.epsilon": 0.5,
    "norm.bias": False,
    "position": "sinusoidal",
    "position.base": 50.0,
    "position.fraction": 0.5,
    "position.scaling": {"kind": "linear", "factor": 2.0},
    "max_length": 17,
    "dropout": 0.5,
    "depth_dropout": 0.5,
    "attention.kind": "linear",
    "attention.heads": 6,
    "attention.kv_heads": 1,
    "attention.key_width": 8,
    "attention.value_width": 5,
    "attention.bias": ["q"],
    "attention.qk_norm": True,
    "attention.scale": 0.7,
    "attention.softcap": 0.5,
    "attention.dropout": 0.5,
    "attention.window": 2,
    "attention.summary": 5,
    "feedforward.kind": "relu",
    "feedforward.hidden": 10,
    "feedforward.bias": False,
    "feedforward.dropout": 0.5,
    "convolution.width": 5,
    "convolution.norm": "batch",
}
OTHER_MODEL = {
    "pool": "max",
    "members": 2,
    "scale": False,
    "softcap": 0.5,
    "tie": False,
    "frontend.bins": 60,
    "frontend.factor": 2,
    "frontend.hidden": 10,
    "frontend.channels": 2,
    "frontend.patch": 5,
    "frontend.height": 20,
    "frontend.width": 40,
    "frontend.position": "sinusoidal",
    "frontend.grams": 3,
    "frontend.buckets": 19,
    "frontend.words": 2,
}
FRONTENDS = {
    "tokens": {"kind": "tokens"},
    "ngrams": {"kind": "ngrams", "buckets": 23},
    "subsampling": {"kind": "subsampling", "bins": 20},
    "conv1d": {"kind": "conv1d", "bins": 20, "hidden": 6},
    "resnet": {"kind": "resnet", "bins": 20, "hidden": 6},
    "patches": {"kind": "patches", "height": 32, "width": 48},
}


def encoder(name):
    return {"encoder": merge_values(STACK, STACKS[name])}


def varied(stack):
    return {f"{stack}.{name}": value for name, value in OTHER.items()}


CASES = {  # a model, its settings, and others to try
    **{f"classifier, {name}": ("classifier", encoder(name), varied("encoder")) for name in STACKS},
    **{
        f"classifier of {name}": (
            "classifier",
            encoder("gru") | {"frontend": frontend},
            OTHER_MODEL,
        )
        for name, frontend in FRONTENDS.items()
    },
    **{
        f"encoder-decoder, {name}": (
            "encoder-decoder",
            encoder("gru") | {"decoder": merge_values(STACK, STACKS[name])},
            OTHER_MODEL | varied("decoder"),
        )
        for name in ("softmax", "gru", "tcn")
    },
    "ensemble of n-grams": (
        "classifier",
        encoder("gru") | {"frontend": FRONTENDS["ngrams"], "members": 3},
        OTHER_MODEL,
    ),
    "masked language model": ("masked language model", encoder("gru"), OTHER_MODEL),
    "language model": ("language model", {"decoder": STACK}, OTHER_MODEL),
}
MAKE = {
    "classifier": lambda config: build_classifier(
        config, classes=2, source=V, spelling=Spelling(np.full(V, 2), 1)
    ),
    "encoder-decoder": lambda config: build_transformer(config, vocabulary=V),
    "masked language model": lambda config: build_masked_model(config, vocabulary=V),
    "language model": lambda config: build_language_model(config, vocabulary=V),
}


def made(model, values):
    """The model, its weights the same every time and none at zero; None where it is refused."""
    torch.manual_seed(0)
    try:
        module = MAKE[model](build(ModelConfig, values))
    except (GlassformerError, ValueError):
        return None
    for weight in module.parameters():
        weight.add_(0.1 * torch.randn_like(weight))
    return module


def is_same(model, one, other):
    """Whether two models have the same weights and say the same in training."""
    ours, theirs = one.state_dict(), other.state_dict()
    if ours.keys() != theirs.keys() or any(not torch.equal(ours[k], theirs[k]) for k in ours):
        return False
    return torch.equal(answer(model, one), answer(model, other))


def answer(model, made):
    torch.manual_seed(1)
    layout = Layout.full(B, T)
    tokens = torch.randint(V, (B, T))
    if model == "encoder-decoder":
        return made(tokens, tokens, source=layout, target=layout)
    frontend = getattr(made, "frontend", None)
    if type(frontend).__name__ in ("Subsampling", "TimeSubsampling", "MelResNet"):
        tokens, layout = torch.randn(B, 4 * T, 20), Layout.full(B, 4 * T)
    if type(frontend).__name__ == "Patches":
        tokens, layout = torch.randn(B, 3, 32, 48), Layout.full(B, 1)
    return made(tokens, layout=layout)


def nested(name, value):
    for part in reversed(name.split(".")):
        value = {part: value}
    return value


@pytest.mark.usefixtures("without_shape_hook")  # only for speed
@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_a_setting_does_nothing_exactly_where_it_is_said_to(case):
    model, values, others = CASES[case]
    config, usual, tried = build(ModelConfig, values), made(model, values), 0
    for name, value in others.items():
        setting = merge_values(values, nested(name, value))
        changed = None if setting == values else made(model, setting)
        if changed is not None:
            assert is_same(model, usual, changed) == bool(why_unused(name, config, model)), name
            tried += 1
    assert tried > 7


def test_every_model_frontend_and_stack_is_listed():
    assert set(MAKE) == set(SETTINGS_OF_MODEL)
    assert set(FRONTENDS) == set(SETTINGS_OF_FRONTEND) == set(FRONTEND_NAMES)
    assert set(SETTINGS_OF_STACK) == set(STACK_NAMES) - {"attention"}


@pytest.mark.parametrize(
    ("model", "asked", "words"),
    [
        (
            "classifier",
            {"encoder": {"attention": {"summary": 64}}},
            "model.encoder.attention.summary has no effect with model.encoder.attention.kind = "
            "softmax; leave it out",
        ),
        (
            "classifier",
            {"encoder": {"convolution": {"width": 5}}},
            "model.encoder.convolution.width has no effect with model.encoder.block = transformer; "
            "leave it out",
        ),
        (
            "classifier",
            {"frontend": {"bins": 40}},
            "model.frontend.bins has no effect with model.frontend.kind = tokens, only with "
            "subsampling, conv1d, resnet; leave it out",
        ),
        (
            "classifier",
            {"encoder": {"depth": 2, "attention": {"window": [3, 3, 0]}}},
            "model.encoder.attention.window has no effect from its number 3 on with "
            "model.encoder.depth = 2; leave it out",
        ),
        ("classifier", {"tie": False}, "model.tie has no effect in a classifier; leave it out"),
        (
            "classifier",
            {"decoder": {"dim": 8}},
            "model.decoder.dim has no effect in a classifier; leave it out",
        ),
        (
            "classifier",
            {"encoder": {"max_length": 99}},
            "model.encoder.max_length has no effect with model.encoder.position = rotary, which "
            "has no limit; leave it out",
        ),
        (
            "encoder-decoder",
            {"decoder": {}, "pool": "max"},
            "model.pool has no effect in an encoder-decoder; leave it out",
        ),
        (
            "classifier",
            {"encoder": {"kind": "gru", "norm": "rms"}},
            "model.encoder.norm has no effect with model.encoder.kind = gru, which uses only dim, "
            "depth, dropout; leave it out",
        ),
    ],
)
def test_a_setting_that_does_nothing_is_refused_by_its_name(model, asked, words):
    config = build(ModelConfig, merge_values({"encoder": {}}, asked))
    with pytest.raises(GlassformerError) as refusal:
        refuse_unused_of_model(asked, config, model)
    assert str(refusal.value) == words


def test_settings_that_do_something_pass():
    asked = {"encoder": {"position": {"base": 5e5}, "attention": {"window": [3, 0]}}, "pool": "max"}
    refuse_unused_of_model(asked, build(ModelConfig, asked), "classifier")
    refuse_unused_of_model(
        {"tie": False}, build(ModelConfig, asked)
    )  # a model of one's own may use it
