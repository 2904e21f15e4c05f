"""Configuration: what is wrong is refused in one line, and its lists name what there is."""

import dataclasses
import inspect
import re
import tomllib
from pathlib import Path

import pytest

from glassformer import config
from glassformer.config import (
    SIZES,
    AttentionConfig,
    ConvolutionConfig,
    MachineConfig,
    ModelConfig,
    NormConfig,
    PositionConfig,
    StackConfig,
    TokenizerConfig,
    build,
    encoder_decoder_of_size,
    read,
    stack_of_size,
)
from glassformer.config.values import plain, to_toml
from glassformer.core.feedforward import FEEDFORWARDS
from glassformer.core.heads import PROJECTIONS
from glassformer.core.kinds import KINDS
from glassformer.core.norms import NORMS
from glassformer.core.positions import POSITIONS, SCALINGS, adds_to_scores, turns
from glassformer.core.residual import ORDERS
from glassformer.errors import GlassformerError
from glassformer.models.baselines import BASELINE_ENCODERS
from glassformer.models.blocks import BLOCKS
from glassformer.models.frontends import FRONTENDS
from glassformer.models.pooling import POOLS
from glassformer.tasks.translate.settings import TranslateConfig


@pytest.mark.parametrize(
    ("names", "there"),
    [
        (config.KIND_NAMES, KINDS),
        (config.POSITION_NAMES, POSITIONS),
        (config.FEEDFORWARD_NAMES, FEEDFORWARDS),
        (config.NORM_NAMES, NORMS),
        (config.SCALING_NAMES, SCALINGS),
        (config.PROJECTION_NAMES, PROJECTIONS),
        (config.ORDER_NAMES, ORDERS),
        (config.BLOCK_NAMES, BLOCKS),
        (config.FRONTEND_NAMES, FRONTENDS),
        (config.POOL_NAMES, POOLS),
        (config.STACK_NAMES, ["attention", *BASELINE_ENCODERS]),
    ],
)
def test_the_literal_lists_name_exactly_what_there_is(names, there):
    assert sorted(names) == sorted(there)


def test_positions_of_each_kind_are_those_it_does_not_refuse():
    for kind, names in config.POSITIONS_OF_KIND.items():
        for name, scheme in POSITIONS.items():
            refused = adds_to_scores(scheme) or (kind == "linear" and turns(scheme))
            assert (name in names) == (not refused)


@pytest.mark.parametrize("name", POSITIONS)
def test_the_settings_of_a_position_are_those_its_scheme_takes(name):
    taken = set(inspect.signature(POSITIONS[name]).parameters)
    own = taken - {"dim", "heads", "max_length", "width", "both_ways"}
    assert own == set(config.SETTINGS_OF_POSITION.get(name, ()))


def test_base_is_the_paper():
    model = encoder_decoder_of_size("base")
    for stack in (model.encoder, model.decoder):
        assert (stack.dim, stack.attention.heads, stack.depth, stack.hidden) == (512, 8, 6, 2048)


def test_the_dial_turns_one_way():
    sizes = [stack_of_size(size) for size in SIZES]
    amounts = [stack.depth * stack.dim**2 for stack in sizes]
    assert amounts == sorted(set(amounts))


def test_a_record_comes_back_from_toml_nested(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text(
        "tie = false\n[decoder]\ndim = 64\ndropout = 0\n"
        '[decoder.attention]\nheads = 4\nkind = "softmax"\n'
    )
    assert read(ModelConfig, path) == ModelConfig(
        tie=False,
        decoder=StackConfig(dim=64, dropout=0.0, attention=AttentionConfig(heads=4)),
    )


def test_a_name_stands_for_a_norm_and_a_position():
    short = {"norm": "rms", "position": "alibi", "convolution": {"norm": "batch"}}
    long = {"norm": {"kind": "rms"}, "position": {"kind": "alibi"}}
    long |= {"convolution": {"norm": {"kind": "batch"}}}
    assert build(StackConfig, short) == build(StackConfig, long)
    assert build(StackConfig, short).norm == NormConfig("rms")
    assert stack_of_size("tiny", position="alibi").position == PositionConfig("alibi")


FORMAT_1 = """
[encoder]
kind = "attention"
block = "transformer"
dim = 64
depth = 2
order = "pre"
norm = "layer"
position = "rotary"
max_length = 258
dropout = 0.2
depth_dropout = 0.0

[encoder.attention]
kind = "softmax"
heads = 4
bias = true
qk_norm = false
dropout = 0.0
summary = 64

[encoder.feedforward]
kind = "gelu"
bias = true
dropout = 0.0

[encoder.convolution]
width = 31
norm = "layer"
"""


def test_a_model_written_by_an_older_version_is_still_read():
    made = build(ModelConfig, tomllib.loads(FORMAT_1))
    assert made == ModelConfig(encoder=stack_of_size("tiny", max_length=258, dropout=0.2))


def test_the_settings_of_a_model_in_the_docs_are_all_there_are_and_can_be_read():
    text = (Path(__file__).parents[1] / "docs/guides/training.md").read_text(encoding="utf-8")
    text = text.split("## The model")[1].split("\n## ")[0]
    example = tomllib.loads(text.split("```toml")[1].split("```")[0])["model"]
    assert build(ModelConfig, example).encoder.layer(2).attention.window == 0
    for record in (StackConfig, NormConfig, PositionConfig, AttentionConfig, ConvolutionConfig):
        for field in dataclasses.fields(record):
            assert re.search(rf"[`.]{field.name}[`.]", text), f"{record.__name__}.{field.name}"


def test_settings_of_a_layer_come_back_from_what_is_written():
    stack = {
        "depth": 3,
        "norm": {"kind": "layer", "epsilon": 1e-12, "bias": False},
        "position": {"kind": "rotary", "base": 5e5, "scaling": {"kind": "ntk", "factor": 2}},
        "attention": {"bias": ["q", "v"], "window": [5, 0]},
    }
    made = build(ModelConfig, {"decoder": stack, "encoder": {"attention": {"window": 7}}})
    assert build(ModelConfig, tomllib.loads(to_toml(plain(made)))) == made


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"norm": "group"}, "unknown norm 'group'; the choices are layer, rms, batch"),
        (
            {"parallel": True, "order": "post"},
            "parallel = true adds all sublayers at once, so no norm can follow each; use order = "
            "pre or sandwich",
        ),
        ({"attention": {"scale": 0.0}}, "attention.scale must be above 0, got 0.0"),
        ({"attention": {"softcap": -1.0}}, "attention.softcap must be above 0, got -1.0"),
        ({"position": {"fraction": 1.5}}, r"position.fraction must lie in \(0, 1\], got 1.5"),
        ({"norm": {"epsilon": 0.0}}, "norm.epsilon must be above 0, got 0.0"),
        (
            {"norm": {"kind": "rms", "bias": False}},
            "norm.bias has no effect with norm.kind = rms, which has none; leave it out",
        ),
        ({"position": {"base": 1.0}}, "position.base must be above 1, got 1.0; 10,000 is usual"),
        (
            {"position": {"kind": "alibi", "base": 5e5}},
            "position.base has no effect with position.kind = alibi; leave it out, or use "
            "position.kind = rotary",
        ),
        ({"position": {"kind": "t5", "buckets": 0}}, "position.buckets must be at least 1, got 0"),
        (
            {"position": {"scaling": {"kind": "yarn", "factor": 2.0}}},
            "position.scaling.kind = yarn needs the length .*; set position.scaling.trained_length",
        ),
        (
            {"position": {"scaling": {"kind": "linear", "factor": 2.0, "slow": 2.0}}},
            "position.scaling.slow has no effect with position.scaling.kind = linear; leave it out",
        ),
        (
            {"position": {"scaling": {"kind": "linear"}}},
            "the setting position.scaling.factor is missing; add it",
        ),
        (
            {"position": {"scaling": {"kind": "linear", "factor": -1}}},
            "position.scaling.factor must be above 0, got -1",
        ),
        (
            {
                "position": {
                    "scaling": {"kind": "llama3", "factor": 2, "trained_length": 9, "slow": 4}
                }
            },
            "position.scaling.slow must be above 0 and below fast, got 4.0 and 4.0",
        ),
        (
            {"attention": {"bias": ["query"]}},
            "unknown projection in attention.bias 'query'; the choices are q, k, v, out",
        ),
        (
            {"attention": {"window": -1}},
            r"attention.window must be 0 \(no window\) or more, or a list .*; got -1",
        ),
        ({"attention": {"window": []}}, "attention.window must be .*; got an empty list"),
        (
            {"position": "none", "attention": {"kind": "linear", "window": 3}},
            "linear attention supports neither window, qk_norm, scale, softcap nor dropout of",
        ),
    ],
)
def test_wrong_settings_of_a_layer_are_refused_in_one_line(values, words):
    with pytest.raises(GlassformerError, match=f"^{words}") as refusal:
        build(StackConfig, values)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"decoder": {"attention": {"heds": 3}}},
            "unknown setting 'decoder.attention.heds'; did you",
        ),
        ({"decoder": {"dim": "wide"}}, "decoder.dim must be int, got 'wide'"),
        ({"decoder": {"dim": True}}, "decoder.dim must be int, got True"),
        ({"decoder": 3}, r"decoder must be a table \(kind, block, ...\), got 3"),
        ({"decoder": {"position": "rotery"}}, "unknown position 'rotery'; did you mean 'rotary'"),
        ({"decoder": {"depth": 0}}, "depth must be at least 1, got 0"),
        (
            {"decoder": {"feedforward": {"hidden": -3}}},
            "feedforward.hidden must be at least 1, got -3",
        ),
        ({"decoder": {}, "frontend": {"patch": 0}}, "frontend.patch must be at least 1, got 0"),
        ({"decoder": {"dropout": 1.5}}, r"dropout must lie in \[0, 1\), got 1.5"),
        ({"decoder": {"convolution": {"width": 4}}}, "convolution.width must be odd, .* got 4"),
        (
            {"decoder": {"attention": {"kind": "linear"}}},
            "linear attention does not support rotary positions; choose from none, learned, "
            "sinusoidal",
        ),
        ({}, "a model needs an encoder, a decoder, or both; got neither"),
        ({"decoder": {}, "frontend": {"factor": 3}}, "frontend.factor must be 2, 4, 8 ...; got 3"),
        (
            {"encoder": {}, "decoder": {}, "share": True, "frontend": {"kind": "resnet"}},
            "share = true needs a frontend of tokens, and .* got resnet and widths",
        ),
        (
            {"encoder": {"dim": 256}, "decoder": {}, "share": True},
            r"an encoder and a decoder of one width; got tokens and widths of \[256, 512\]",
        ),
        (
            {"decoder": {"position": "none", "attention": {"kind": "linear", "qk_norm": True}}},
            "linear attention supports neither window, qk_norm, scale, softcap nor dropout of",
        ),
        ({"decoder": {}, "softcap": 0.0}, "softcap must be above 0, got 0.0"),
        ({"decoder": {}, "share": True}, r"and an encoder and a decoder .* widths of \[512\]"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(values, words):
    with pytest.raises(GlassformerError, match=words) as refusal:
        build(ModelConfig, values)
    assert "\n" not in str(refusal.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(GlassformerError, match=r"nowhere.toml: cannot be read \(No such file"):
        read(ModelConfig, tmp_path / "nowhere.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("dim = = 3")
    with pytest.raises(GlassformerError, match=r"broken.toml: not valid TOML .*; fix that line"):
        read(ModelConfig, broken)


def test_records_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        StackConfig().dim = 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kind": "symbols"}, "^unknown task.target.kind 'symbols'; the choices are auto, bytes"),
        ({"dropout": 0.1}, "^task.target.dropout drops .*; set task.target.kind=bpe$"),
    ],
)
def test_tokens_of_a_target_are_refused_by_the_name_they_were_set_by(values, words):
    with pytest.raises(GlassformerError, match=words):
        build(TranslateConfig, {"target": values}, "task.")


def test_tokens_that_stand_nowhere_else_are_called_by_their_usual_name():
    for where in ("", "data.tokenizer."):
        with pytest.raises(GlassformerError, match=r"^unknown data\.tokenizer\.kind 'symbols'"):
            build(TokenizerConfig, {"kind": "symbols"}, where)


def test_more_threads_than_any_machine_has_are_refused():
    with pytest.raises(
        GlassformerError, match=r"machine.threads must be at most 1,024, got 100000"
    ):
        MachineConfig(threads=100_000)
    assert MachineConfig(threads=1024).threads == 1024
