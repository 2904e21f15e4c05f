"""What a person asks for becomes settings: later layers win, and nothing is dropped in silence."""

import shlex
from pathlib import Path

import pytest

from glassformer.cli import main
from glassformer.config import PositionConfig
from glassformer.config.values import to_toml
from glassformer.errors import GlassformerError
from glassformer.runs import api
from glassformer.runs.arguments import train_request
from glassformer.runs.request import TrainRequest, seconds


def settled(**asked):
    return TrainRequest(**{"job": "classify", "data": ("x.csv",)} | asked).resolve()


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_every_layer_wins_over_those_below_it(tmp_path):
    file = write(tmp_path / "a.toml", "[model.encoder]\ndim = 96\ndepth = 3\ndropout = 0.3\n")
    encoder = settled().model.encoder
    assert (encoder.dim, encoder.depth, encoder.dropout) == (64, 2, 0.2)  # the job's
    encoder = settled(config=file).model.encoder
    assert (encoder.dim, encoder.depth, encoder.dropout) == (96, 3, 0.3)
    encoder = settled(config=file, size="base").model.encoder
    assert (encoder.dim, encoder.depth, encoder.dropout) == (512, 6, 0.3)
    values = {"model": {"encoder": {"depth": 5}}}
    encoder = settled(config=file, size="base", values=values).model.encoder
    assert (encoder.dim, encoder.depth, encoder.dropout) == (512, 5, 0.3)
    more = {"values": values, "settings": ("model.encoder.depth=7", "model.encoder.depth=1")}
    encoder = settled(config=file, size="base", **more).model.encoder
    assert (encoder.dim, encoder.depth, encoder.dropout) == (512, 1, 0.3)


POST = ("model.encoder.order=post", "model.decoder.order=post")


@pytest.mark.parametrize(
    ("settings", "rate", "warmup"),
    [
        ((), 1e-3, 0.1),
        (POST, 1e-3, 0.3),  # narrow as it is, it takes the usual rate
        ((*POST, "model.encoder.dim=512", "model.decoder.dim=512"), 0.15 / 512, 0.3),
        ((POST[1], "model.decoder.dim=256", "model.encoder.dim=256"), 0.15 / 256, 0.3),
        ((*POST, "train.optimiser.lr=0.002", "train.optimiser.warmup=0"), 0.002, 0.0),
        (("model.encoder.order=sandwich",), 1e-3, 0.1),
    ],
)
def test_models_in_post_order_begin_gently_unless_told_otherwise(settings, rate, warmup):
    asked = settled(job="translate", data=("x.tsv",), settings=settings, device="cpu")
    found = asked.train.optimiser
    assert (found.lr, found.warmup) == (pytest.approx(rate), warmup)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            ("model.decoder=lstm", "model.decoder.order=post"),
            "model.decoder.order has no effect wi",
        ),
        (("model.encoder=tcn", "model.encoder.attention.heads=2"), "model.encoder.attention.heads"),
        (("model.encoder.attention.summary=5",), "model.encoder.attention.summary has no effect w"),
        (("model.encoder.convolution.width=5",), "model.encoder.convolution.width has no effect w"),
        (
            ("model.frontend.bins=5",),
            "model.frontend.bins has no effect with model.frontend.kind = ",
        ),
        (("model.pool=max",), "model.pool has no effect in an encoder-decoder; leave it out"),
        (
            ("model.encoder.position=alibi", "model.encoder.position.base=5e5"),
            "model.encoder.position.base",
        ),
    ],
)
def test_settings_of_a_stack_that_does_not_go_by_them_are_refused(settings, told):
    with pytest.raises(GlassformerError) as caught:
        settled(job="translate", settings=settings)
    assert str(caught.value).startswith(told)
    fine = "model.decoder.attention.heads=2", "model.encoder.convolution.width=5"
    model = settled(job="translate", settings=("model.kind=tcn", *fine)).model
    assert (model.decoder.attention.heads, model.encoder.convolution.width) == (2, 5)


@pytest.mark.parametrize(
    ("job", "idle", "fine", "told"),
    [
        ("classify", "tie=true", "pool=mean", "model.tie has no effect in a classifier; leave it"),
        (
            "pretrain",
            "pool=mean",
            "tie=true",
            "model.pool has no effect in a masked language model",
        ),
    ],
)
def test_settings_that_the_model_of_a_job_does_not_have_are_refused(job, idle, fine, told):
    with pytest.raises(GlassformerError, match=f"^{told}"):
        settled(job=job, settings=(f"model.{idle}",))
    settled(job=job, settings=(f"model.{fine}",))


def test_settings_that_a_job_declares_unused_are_refused():
    with pytest.raises(GlassformerError, match=r"^data\.token_dropout has no effect on pretrain;"):
        settled(job="pretrain", settings=("data.token_dropout=0.5",))
    assert settled(job="classify", settings=("data.token_dropout=0.5",)).data.token_dropout == 0.5


def test_settings_that_do_nothing_are_refused_wherever_a_person_wrote_them(tmp_path):
    values = {"model": {"encoder": {"attention": {"summary": 5}}}}
    with pytest.raises(
        GlassformerError, match=r"^model\.encoder\.attention\.summary has no effect"
    ):
        settled(values=values)
    file = tmp_path / "settings.toml"
    file.write_text(to_toml(values))
    with pytest.raises(
        GlassformerError, match=r"^model\.encoder\.attention\.summary has no effect"
    ):
        settled(config=file)
    file.write_text(settled().to_toml())  # that of a run: a person chose only some of it
    assert settled(config=file).model.encoder.attention.summary == 64


def test_a_setting_of_a_position_keeps_the_kind_that_was_chosen_before(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('model.encoder.position = "t5"')
    found = settled(config=file, settings=("model.encoder.position.buckets=12",)).model.encoder
    assert found.position == PositionConfig("t5", buckets=12)
    found = settled(config=file, settings=("model.encoder.position=alibi",)).model.encoder
    assert found.position == PositionConfig("alibi")


def test_settings_of_a_search_that_is_not_made_are_refused():
    top = "task.decode.sample.top_p=0.9"
    with pytest.raises(GlassformerError, match=r"^task\.decode\.sample\.top_p has no effect with"):
        settled(job="translate", settings=(top,))
    sampled = settled(job="translate", settings=(top, "task.decode.method=sample"))
    assert sampled.task.decode.sample.top_p == 0.9


@pytest.mark.parametrize(
    ("asked", "steps", "epochs", "time"),
    [
        ({}, None, None, None),
        ({"steps": 5}, 5, None, None),
        ({"time": "2m"}, None, None, 120.0),
        ({"settings": ("train.epochs=2",)}, None, 2.0, None),
        ({"settings": ("train.steps=7", "train.epochs=2")}, None, 2.0, None),
        ({"settings": ("train.steps=7",), "epochs": 3}, None, 3.0, None),
        ({"values": {"train": {"time": 9.0}}, "settings": ("train.steps=7",)}, 7, None, None),
    ],
)
def test_the_last_word_on_how_long_replaces_all_others(asked, steps, epochs, time):
    train = settled(**asked).train
    assert (train.steps, train.epochs, train.time) == (steps, epochs, time)


def test_a_file_that_says_how_long_gives_way_to_the_command_line(tmp_path):
    file = write(tmp_path / "run.toml", "[train]\nsteps = 9\nepochs = 2.0\nclip = 0.5\n")
    assert (settled(config=file).train.steps, settled(config=file).train.clip) == (9, 0.5)
    train = settled(config=file, settings=("train.epochs=4",)).train
    assert (train.steps, train.epochs, train.clip) == (None, 4.0, 0.5)


def test_asking_does_not_change_what_was_given():
    values = {"train": {"epochs": 2.0, "clip": 0.5}}
    asked = TrainRequest(job="classify", data=("x.csv",), values=values, steps=3)
    assert asked.resolve() == asked.resolve()
    assert values == {"train": {"epochs": 2.0, "clip": 0.5}}


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, "auto"),
        ({"pretrain": False}, "no"),
        ({"settings": ("pretrain=no",)}, "no"),
        ({"settings": ("pretrain=auto",)}, "auto"),
        ({"settings": ("pretrain=yes",)}, "yes"),
        ({"settings": ("pretrain=yes",), "pretrain": False}, "no"),
        ({"values": {"pretrain": "yes"}}, "yes"),
        ({"job": "pretrain"}, "no"),
    ],
)
def test_texts_are_learned_first_as_it_was_said(asked, wanted):
    assert settled(**asked).pretrain == wanted


def test_a_job_without_a_first_stage_cannot_be_pretrained():
    with pytest.raises(GlassformerError, match="pretrain=yes: pretrain has no pretraining stage"):
        settled(job="pretrain", settings=("pretrain=yes",))


def test_the_facts_of_another_run_are_not_taken_over(tmp_path):
    text = 'job = "pretrain"\norigin = "elsewhere"\nversion = "0.0"\nformat = 1\nseed = 7\n'
    config = settled(config=write(tmp_path / "old.toml", text))
    assert (config.job, config.origin, config.seed) == ("classify", None, 7)
    assert config.version != "0.0"


def test_a_set_of_the_catalog_is_split_by_its_default_group_unless_told_otherwise():
    assert settled(data=("imdb",)).data.group == "film"
    assert settled(data=("imdb",), settings=("data.group=other",)).data.group == "other"
    assert settled(data=("imdb",), group="third").data.group == "third"
    assert settled(data=("imdb", "x.csv")).data.group is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("90", 90),
        ("90s", 90),
        ("1.5h", 5400),
        ("1h30m", 5400),
        ("2d", 172800),
        (7, 7),
        (None, None),
    ],
)
def test_times_are_read_as_people_write_them(text, wanted):
    assert seconds(text) == wanted


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "-3s", "1h30", "m", "nan"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(GlassformerError, match="is not a time; write 90s, 10m or 1h30m"):
        seconds(text)


def test_two_ways_to_say_how_long_are_refused_in_python_too():
    with pytest.raises(GlassformerError, match="steps and time both set the length of training"):
        TrainRequest(job="classify", data=(), steps=3, time="1m")
    with pytest.raises(GlassformerError, match="module=encoder needs a run to copy it from"):
        TrainRequest(job="classify", data=(), module="encoder")


def test_the_command_says_the_same_when_it_is_typed(monkeypatch):
    """So the command in a report makes the same run again."""
    typed = []
    monkeypatch.setattr(api, "run_training", lambda asked, display, **_: typed.append(asked))
    monkeypatch.setattr("glassformer.cli.results.show_run", lambda run, as_json: None)
    everything = TrainRequest(
        job="classify",
        data=("my reviews.csv", "more.csv"),
        run=Path("runs/a b"),
        valid=("v.csv", "w.csv"),
        test=("t.csv",),
        columns={"text": "Review Text", "label": "stars"},
        group="film",
        size="small",
        config=Path("mine.toml"),
        settings=("train.clip=0.5", 'train.freeze=["encoder"]'),
        epochs=1.5,
        pretrain=False,
        seed=3,
        origin=Path("runs/old"),
        module="encoder",
        device="cpu",
        deterministic=True,
        curve=True,
    )
    bare = TrainRequest(job="pretrain", data=("x",), time="1h30m")
    for asked in (everything, bare):
        assert main(shlex.split(asked.command())[1:]) == 0
    assert typed == [everything, bare]


def test_a_declared_header_is_a_setting_of_the_run_and_an_option_of_its_command():
    request = train_request("classify", ["x.csv"], header="no")
    assert request.resolve().data.header is False
    assert "--header no" in request.command()
    assert train_request("classify", ["x.csv"], header=True).resolve().data.header is True
    assert train_request("classify", ["x.csv"]).resolve().data.header is None
