"""One word for a stack of the model: what it means, where it may stand, and what is refused."""

from dataclasses import replace

import pytest

from glassformer.config import STACK_NAMES, STYLES, stack_of_size
from glassformer.errors import GlassformerError
from glassformer.models.baselines import BASELINE_DECODERS, BASELINE_ENCODERS
from glassformer.runs.request import TrainRequest
from glassformer.runs.settings import KINDS, WORDS


def model(*settings, job="translate", **asked):
    return TrainRequest(job=job, data=("x.tsv",), settings=settings, **asked).resolve().model


def stacks(*settings, **asked):
    made = model(*settings, **asked)
    return made.encoder.kind, made.decoder.kind


@pytest.mark.parametrize(
    ("settings", "kinds"),
    [
        ((), ("attention", "attention")),
        (("model.kind=gru",), ("gru", "gru")),
        (("model.kind=transformer",), ("attention", "attention")),
        (("model.encoder=lstm",), ("lstm", "attention")),
        (("model.encoder=tcn", "model.decoder=gru"), ("tcn", "gru")),
        (("model.kind=lstm", "model.decoder=tcn"), ("lstm", "tcn")),
        (("model.kind=gru", "model.decoder=transformer"), ("gru", "attention")),
        (("model.decoder=transformer", "model.kind=gru"), ("gru", "gru")),
    ],
)
def test_a_word_stands_for_a_kind_and_the_last_one_wins(settings, kinds):
    assert stacks(*settings) == kinds


def test_a_setting_of_a_stack_right_under_the_model_is_that_of_every_stack():
    made = model("model.depth=5", "model.attention.heads=1", "model.encoder.depth=3")
    assert (made.encoder.depth, made.decoder.depth) == (3, 5)
    assert (made.encoder.attention.heads, made.decoder.attention.heads) == (1, 1)
    made = model("model.kind=tcn", "model.norm=batch")
    assert (made.decoder.convolution.width, made.decoder.norm.kind) == (3, "batch")
    with pytest.raises(GlassformerError, match=r"'model.dmi'; did you mean 'model.dim'\?"):
        model("model.dmi=96")


def test_other_settings_of_the_stack_stay_whichever_comes_first():
    for order in (1, -1):
        settings = ("model.encoder=gru", "model.encoder.dim=96", "model.decoder.dim=96")[::order]
        made = model(*settings)
        assert (made.encoder.kind, made.encoder.dim, made.encoder.depth) == ("gru", 96, 2)
    assert model("model.kind=gru", size="small").decoder.dim == 256


def test_a_style_replaces_the_one_before_it_and_leaves_the_size_alone():
    llama = model("model.decoder=llama", size="small").decoder
    assert (llama.norm.kind, llama.position.kind, llama.feedforward.kind) == (
        "rms",
        "rotary",
        "swiglu",
    )
    assert (llama.dim, llama.attention.heads, llama.attention.kv_heads) == (256, 4, 2)
    settings = ("model.decoder=llama", "model.decoder=gpt2")
    gpt2 = model(*settings, size="small").decoder
    assert gpt2 == replace(stack_of_size("small", style="gpt2"), max_length=512)
    assert (gpt2.norm.kind, gpt2.position.kind, gpt2.attention.kv_heads) == (
        "layer",
        "learned",
        None,
    )


def test_a_tcn_has_its_usual_width_unless_told():
    assert model("model.encoder=tcn").encoder.convolution.width == 3
    settings = ("model.encoder=tcn", "model.encoder.convolution.width=5")
    assert model(*settings).encoder.convolution.width == 5


def test_a_job_with_one_stack_has_one_kind():
    made = model("model.kind=lstm", job="classify", pretrain=False)
    assert made.encoder.kind == "lstm"
    assert made.decoder is None


def test_words_may_stand_in_files_and_recipes(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('[model]\nkind = "gru"\nencoder = "tcn"\n', encoding="utf-8")
    assert stacks(config=file) == ("tcn", "gru")
    assert stacks(values={"model": {"kind": "gru", "decoder": {"dim": 64}}}) == ("gru", "gru")


def test_every_kind_has_a_word():
    assert {values["kind"] for values in WORDS.values()} == set(STACK_NAMES)
    assert set(KINDS["encoder"]) == {"transformer", "attention", *STYLES, *BASELINE_ENCODERS}
    assert set(KINDS["decoder"]) == {"transformer", "attention", *STYLES, *BASELINE_DECODERS}


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("model.encoder=gruu", "unknown model.encoder 'gruu'; did you mean 'gru'?"),
        ("model.decoder=rnn", "unknown model.decoder 'rnn'; the choices are transformer, att"),
        ("model.kind=tranformer", "unknown model.kind of the encoder 'tranformer'; did you mean"),
        ("model.kind=3", "model.kind must be a word such as gru, got 3"),
        ("model.encoder=3", "model.encoder must be a table (kind, block, ...), got 3"),
    ],
)
def test_a_word_that_means_nothing_is_refused(setting, complaint):
    with pytest.raises(GlassformerError) as caught:
        model(setting)
    assert str(caught.value).startswith(complaint)
