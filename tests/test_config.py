"""Configuration: what is wrong is refused in one line, and its lists name what there is."""

import dataclasses

import pytest

from glassformer import config
from glassformer.config import (
    SIZES,
    AttentionConfig,
    MachineConfig,
    ModelConfig,
    StackConfig,
    TokenizerConfig,
    build,
    encoder_decoder_of_size,
    read,
    stack_of_size,
)
from glassformer.core.feedforward import FEEDFORWARDS
from glassformer.core.kinds import KINDS
from glassformer.core.norms import NORMS
from glassformer.core.positions import POSITIONS, adds_to_scores, turns
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


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"decoder": {"attention": {"heds": 3}}},
            "unknown setting 'decoder.attention.heds'; did you",
        ),
        ({"decoder": {"dim": "wide"}}, "decoder.dim must be int, got 'wide'"),
        ({"decoder": {"dim": True}}, "decoder.dim must be int, got True"),
        ({"decoder": 3}, "decoder must be StackConfig, got 3"),
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
            "linear attention cannot apply rotary positions; choose from none, learned, sinusoidal",
        ),
        ({}, "a model needs an encoder, a decoder, or both; got neither"),
        ({"decoder": {}, "frontend": {"factor": 3}}, "frontend.factor must be 2, 4, 8 ...; got 3"),
        (
            {"encoder": {}, "decoder": {}, "share": True, "frontend": {"kind": "resnet"}},
            "share = true needs a frontend of tokens, got resnet",
        ),
        (
            {"encoder": {"dim": 256}, "decoder": {}, "share": True},
            "share = true needs one width, got an encoder of 256 and a decoder of 512; make them",
        ),
        (
            {"decoder": {"position": "none", "attention": {"kind": "linear", "qk_norm": True}}},
            "linear attention has no window, no qk_norm and no dropout of weights; leave them out",
        ),
        ({"decoder": {}, "share": True}, "share = true needs both an encoder and a decoder"),
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
        ({"dropout": 0.1}, "^task.target.dropout leaves out .*; set task.target.kind=bpe$"),
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
