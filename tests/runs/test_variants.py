"""Variants: what may vary, grids and one at a time, and what is refused before anything trains."""

import pytest

from glassformer.errors import GlassformerError, at_command_line
from glassformer.runs.request import TrainRequest
from glassformer.runs.variants import (
    Variant,
    base_request,
    choices_of,
    resolve_all,
    variants_of,
)


@pytest.fixture(autouse=True)
def _words_of_the_command_line():
    with at_command_line():
        yield


def request(*settings, job="classify", **asked):
    return base_request(TrainRequest(job=job, data=("x.csv",), settings=settings, **asked))


def resolved(*vary, base=None, one_at_a_time=False, on="valid"):
    variants = variants_of(choices_of(list(vary)), one_at_a_time=one_at_a_time)
    return resolve_all(variants, base or request(), on)


def test_a_grid_has_every_combination_and_one_at_a_time_has_one_change():
    choices = choices_of(["model.norm=layer,rms", "train.clip=0,1,2"])
    assert len(variants_of(choices, one_at_a_time=False)) == 6
    names = [one.name for one in variants_of(choices, one_at_a_time=True)]
    assert names == [
        "norm=layer, clip=0",
        "norm=rms, clip=0",
        "norm=layer, clip=1",
        "norm=layer, clip=2",
    ]


def test_every_stack_takes_a_setting_right_under_the_model():
    found = resolved("model.position=rotary,alibi", base=request(job="translate"))
    kinds = [(one.model.encoder.position.kind, one.model.decoder.position.kind) for one in found]
    assert kinds == [("rotary", "rotary"), ("alibi", "alibi")]


@pytest.mark.parametrize(
    "vary",
    [
        "model.kind=gru,tcn",
        "model.encoder.attention.window=[2,4],0",
        "task.max_length=10,20",
        "data.tokenizer.kind=words,bytes",
        "train.optimiser.lr=.1,1e-2",
        "machine.precision=fp32,bf16",
        "pretrain=no,auto",
    ],
)
def test_settings_of_all_tables_vary(vary):
    assert len(resolved(vary)) == 2


def test_in_python_values_are_lists():
    choices = choices_of(
        {"model.tie": [True, False], "model.encoder.attention.window": [[2, 4], 0]}
    )
    assert choices == {
        "model.tie": ["true", "false"],
        "model.encoder.attention.window": ["[2, 4]", "0"],
    }
    assert choices_of({"model.norm": ["layer", "rms"]}) == choices_of("model.norm=layer,rms")


def test_variants_use_the_whole_budget_without_pretraining_and_baseline(tmp_path):
    [first, _] = resolved("model.norm=layer,rms")
    assert (first.pretrain, first.baseline, first.train.patience) == ("no", False, None)
    file = tmp_path / "f.toml"
    file.write_text("baseline = true\npretrain = 'auto'\ntrain.patience = 3\n", encoding="utf-8")
    [first, _] = resolved("model.norm=layer,rms", base=request(config=file))
    assert (first.pretrain, first.baseline, first.train.patience) == ("auto", True, 3)
    [first, _] = resolved("model.norm=layer,rms", base=request("train.patience=2"))
    assert first.train.patience == 2


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ([], "nothing to compare; add --vary KEY=A,B, such as --vary model.position=rotary,alibi"),
        (["model.norm"], "--vary 'model.norm' is not KEY=A,B; write, for example, --vary "),
        (["=a,b"], "--vary '=a,b' is not KEY=A,B"),
        (["model.norm="], "--vary model.norm= lacks a value; write --vary model.norm=A,B"),
        (["model.norm=rms,,layer"], "--vary model.norm= lacks a value"),
        (["model.norm=rms,"], "--vary model.norm= lacks a value"),
        (["model.norm=rms"], "--vary model.norm=rms is a single value; add another to compare "),
        (["model.norm=rms,rms"], "--vary model.norm lists rms twice; list each value once"),
        (["model.tie=true,false"] * 2, "--vary model.tie is given twice; list all values in one"),
        (["seed=1,2"], "--vary seed: every variant is trained with the same seeds; use --seeds"),
        (["train.steps=1,2"], "--vary train.steps: every variant has the same budget; use --steps"),
        (["data.files=a,b"], "--vary data.files: every variant reads the same rows"),
        (["job=classify,translate"], "--vary job: job is not a setting; leave it out"),
        ({"model.norm": "rms"}, "--vary model.norm: its values must be a list, got 'rms'; write "),
        ({"model.norm": []}, "--vary model.norm= lacks a value"),
        (7, "--vary takes settings and their values, got 7; write a dictionary such as "),
    ],
)
def test_what_cannot_vary_is_refused(vary, message):
    with pytest.raises(GlassformerError) as error:
        choices_of(vary)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("model.positon=a,b", "unknown setting 'model.positon'; did you mean 'model.position'?"),
        ("model.encoder.nrom=a,b", "unknown setting 'model.encoder.nrom'; did you mean 'model.en"),
        ("model.position=rotary,rotery", "model.position=rotery: unknown position 'rotery'; did "),
        ("train.clip=0,x", "train.clip=x: train.clip must be float, got 'x'"),
        (
            "model.kind=attention,transformer",
            "model.kind=transformer and model.kind=attention are the same settings; leave one out",
        ),
    ],
)
def test_a_variant_that_is_refused_is_named(vary, message):
    with pytest.raises(GlassformerError) as error:
        resolved(vary, base=request("model.dim=32"))
    assert message in str(error.value)


def test_a_seed_or_a_budget_among_the_settings_is_refused():
    with pytest.raises(GlassformerError, match=r"--set seed=1: every variant .* use --seeds"):
        request("seed=1")
    with pytest.raises(GlassformerError, match=r"--set train.time=5: .* use --time"):
        request("train.time=5")


def test_variants_that_learn_validation_rows_are_compared_on_test_rows_alone():
    refits, kinds = "train.refit=false,true", "model.norm=layer,rms"
    told = r"train.refit=true: models that learn the validation rows .*; use --on test, or --set"
    assert len(resolved(refits, on="test")) == 2
    with pytest.raises(GlassformerError, match=told):
        resolved(refits)
    with pytest.raises(GlassformerError, match=r"model\.norm=layer: models that learn"):
        resolved(kinds, base=request("train.refit=none"))  # when n-grams learn them


def test_a_variant_is_named_by_what_tells_it_apart():
    variant = Variant((("model.encoder.norm", "rms"), ("model.decoder.norm", "layer")))
    assert variant.name == "encoder.norm=rms, decoder.norm=layer"
    assert str(variant) == "model.encoder.norm=rms, model.decoder.norm=layer"
