"""Settings: out to TOML and in again, typed on a command line, laid over one another."""

import math
import tomllib
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, strategies as st

from glassformer.config import (
    DataConfig,
    MachineConfig,
    ModelConfig,
    OptimiserConfig,
    StackConfig,
    build,
    read,
    stack_of_size,
)
from glassformer.config.data import FORM_NAMES, TOKENIZER_NAMES
from glassformer.config.run import FORMAT, Config, config_of, read_config_values
from glassformer.config.training import OPTIMISER_NAMES, SCHEDULE_NAMES, TrainConfig
from glassformer.config.values import MOST, merge_values, parse_setting, plain, read_values, to_toml
from glassformer.data.text.tokenizer import TOKENIZERS
from glassformer.errors import GlassformerError
from glassformer.models.build import build_classifier
from glassformer.tasks import JOBS
from glassformer.tasks.classify.long_texts import WAYS
from glassformer.tasks.classify.settings import LONG_NAMES, ClassifyConfig
from glassformer.training.optimisers import Optimisers
from glassformer.training.schedules import SHAPES

texts = st.text(max_size=20)  # no surrogates: no file can hold them
numbers = st.floats(allow_nan=False, allow_infinity=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Inner:
    rate: float = 0.5
    words: tuple[str, ...] = ("default",)
    named: dict[str, str] = field(default_factory=lambda: {"default": "here"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer:
    name: str
    count: int = 1
    sure: bool = False
    maybe: int | None = None
    shares: tuple[float, ...] = ()
    inner: Inner = field(default_factory=Inner)
    other: Inner | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    first: int
    last: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    span: Span


inners = st.builds(
    Inner,
    rate=numbers,
    words=st.lists(texts, max_size=3).map(tuple),
    named=st.dictionaries(texts, texts, max_size=3),
)
outers = st.builds(
    Outer,
    name=texts,
    count=st.integers(1 - MOST, MOST - 1),
    sure=st.booleans(),
    maybe=st.none() | st.integers(0, 9),
    shares=st.lists(numbers, max_size=3).map(tuple),
    inner=inners,
    other=st.none() | inners,
)


@given(outers)
@example(Outer(name='"""\\u0000\x00\x1f\x7f\x85\u2028\n\r\t\b\f'))
@example(Outer(name="", inner=Inner(rate=1e-9, words=(), named={})))
@example(Outer(name="[x]", inner=Inner(named={"": "=", "a.b": "#", "ключ": "'", "-_9": "\n"})))
@example(Outer(name="x", shares=(1e22, -0.0, 5e-324), other=Inner(words=("",), named={})))
def test_a_record_comes_back_from_toml_as_it_was(record):
    text = to_toml(plain(record))
    assert build(Outer, tomllib.loads(text)) == record


def test_a_whole_configuration_comes_back_from_its_file(tmp_path):
    config = Config(
        job="classify",
        task=ClassifyConfig(separator="|", class_weights=True),
        model=build(Config, {"job": "", "task": {}, "model": {"encoder": {}}}).model,
        data=DataConfig(files=("a b.csv", "ü.csv"), columns={"text": "Review Text"}, group="film"),
        train=TrainConfig(steps=3, freeze=("encoder",)),
    )
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml(), encoding="utf-8")
    assert config_of(read_config_values(path), ClassifyConfig) == config


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400])
def test_what_is_no_number_is_refused_on_the_way_in_and_out(value):
    with pytest.raises(
        GlassformerError, match=r"train.clip must be a number, got (-?inf|nan|10+); "
    ):
        build(TrainConfig, {"clip": value}, "train.")
    if isinstance(value, float):
        with pytest.raises(ValueError, match="not JSON compliant"):
            to_toml({"clip": value})


def test_what_toml_has_no_word_for_is_refused():
    with pytest.raises(ValueError, match="TOML cannot express None"):
        to_toml({"group": None})
    with pytest.raises(GlassformerError, match=r"data.files: 'a\\udcff.csv' is not valid Unicode;"):
        build(DataConfig, {"files": ["a\udcff.csv"]}, "data.")


@pytest.mark.parametrize(
    ("text", "nested"),
    [
        ("seed=3", {"seed": 3}),
        ("train.optimiser.lr = 3e-4", {"train": {"optimiser": {"lr": 3e-4}}}),
        ("train.clip=.5", {"train": {"clip": 0.5}}),
        ("train.clip=-.5", {"train": {"clip": -0.5}}),
        ("data.group=v.5", {"data": {"group": "v.5"}}),
        ("data.tokenizer.kind=bpe", {"data": {"tokenizer": {"kind": "bpe"}}}),
        ("data.group=a film", {"data": {"group": "a film"}}),
        ('data.group="2"', {"data": {"group": "2"}}),
        ("task.class_weights=true", {"task": {"class_weights": True}}),
        ('train.freeze=["encoder", "pool"]', {"train": {"freeze": ["encoder", "pool"]}}),
        ("task.separator==", {"task": {"separator": "="}}),
        ("task.separator=;", {"task": {"separator": ";"}}),
        ("task.separator=#", {"task": {"separator": "#"}}),
        ("task.separator=", {"task": {"separator": ""}}),
        ("data.group=1\nvalid=2", {"data": {"group": "1\nvalid=2"}}),
    ],
)
def test_a_setting_is_read_as_toml_would_and_a_bare_word_is_text(text, nested):
    assert parse_setting(text) == nested


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000 + "]" * 5000, ".".join(["a"] * 20_000) + "=1"]
)
def test_a_file_nested_too_deeply_is_one_line(text, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(
        GlassformerError, match=r"config.toml: too large or nested too deeply for settings; "
    ):
        read_values(path)
    with pytest.raises(GlassformerError, match="is no value; close its brackets"):
        parse_setting("a=" + "[" * 5000)


@pytest.mark.parametrize("text", ["", "seed", "=3", ".seed=3", "train..clip=3", " = ", "train.=3"])
def test_what_is_no_setting_is_refused_with_an_example(text):
    with pytest.raises(GlassformerError, match=r"is not key=value; write, for example, set=.train"):
        parse_setting(text)


def test_later_settings_win_and_tables_are_merged():
    below = {"a": {"x": 1, "y": {"z": 2}}, "b": 3, "c": {"d": 4}}
    above = {"a": {"y": {"w": 5}, "x": 6}, "b": {"e": 7}, "c": 8}
    assert merge_values(below, above) == {
        "a": {"x": 6, "y": {"z": 2, "w": 5}},
        "b": {"e": 7},
        "c": 8,
    }
    assert below == {"a": {"x": 1, "y": {"z": 2}}, "b": 3, "c": {"d": 4}}, "nothing is changed"
    assert merge_values({}, above) == above == merge_values(above, {})


def test_none_unsets_what_is_not_text():
    assert build(TrainConfig, {"patience": "none"}).patience is None
    assert build(StackConfig, {"attention": {"kv_heads": "none"}}).attention.kv_heads is None
    assert build(DataConfig, {"group": "none"}).group == "none"
    with pytest.raises(GlassformerError, match=r"train.keep must be int, got 'none'"):
        build(TrainConfig, {"keep": "none"}, "train.")


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        (TrainConfig, {"step": 3}, "unknown setting 'step'; did you mean 'steps'?"),
        (TrainConfig, {"steps": 3.0}, "steps must be int, got 3.0"),
        (TrainConfig, {"freeze": 3}, "freeze must be a list of str, got 3"),
        (TrainConfig, {"freeze": [3]}, "freeze must be str, got 3; put it in quotes"),
        (TrainConfig, {"optimiser": {"warmpu": 1}}, "unknown setting 'optimiser.warmpu'; did"),
        (TrainConfig, {"optimiser": 1}, "optimiser must be a table (kind, lr, ...), got 1"),
        (DataConfig, {"group": 2024}, "group must be str, got 2024; put it in quotes"),
        (DataConfig, {"columns": {"text": 1}}, "columns.text must be str, got 1; put it in quotes"),
        (DataConfig, {"columns": "text"}, "columns must be a table, got 'text'"),
        (Outer, {}, "the setting name is missing; add it"),
        (Line, {"span": {}}, "the settings span.first, span.last are missing; add them"),
        (Line, {"span": {"last": 2}}, "the setting span.first is missing; add it"),
        (Outer, {"name": "x", "maybe": "y"}, "maybe must be int, got 'y'"),
        (Outer, {"name": "x", "inner": 3}, "inner must be a table (rate, words, ...), got 3"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(kind, values, words):
    with pytest.raises(GlassformerError) as refusal:
        build(kind, values)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_quotes_are_advised_only_where_any_text_will_do():
    with pytest.raises(GlassformerError, match=r"compile must be bool or str, got 1$"):
        build(MachineConfig, {"compile": 1})


def test_the_jobs_own_settings_are_checked_too():
    model = {"model": {"encoder": {}}}
    with pytest.raises(GlassformerError, match=r"'task.log'; did you mean 'task.long'\?"):
        config_of({"job": "classify", "task": {"log": 1}, **model}, ClassifyConfig)
    with pytest.raises(GlassformerError, match="task must be a table of settings, got 3"):
        config_of({"job": "classify", "task": 3, **model}, ClassifyConfig)
    with pytest.raises(GlassformerError, match="the setting model is missing; add it"):
        config_of({"job": "classify"}, ClassifyConfig)


def test_a_seed_is_a_number_that_every_generator_takes():
    config = config_of({"job": "classify", "model": {"encoder": {}}}, ClassifyConfig)
    assert replace(config, seed=2**32 - 1).seed == 2**32 - 1
    for seed in (-1, 2**32):
        with pytest.raises(
            GlassformerError, match=f"seed must lie in 0 ... 4294967295, got {seed}"
        ):
            replace(config, seed=seed)


@pytest.mark.parametrize(
    ("names", "there"),
    [
        (TOKENIZER_NAMES, ["auto", *TOKENIZERS]),
        (FORM_NAMES, ["auto", "packed", "padded"]),
        (SCHEDULE_NAMES, ["inverse-root", *SHAPES]),
        (LONG_NAMES, WAYS),
    ],
)
def test_the_literal_lists_of_a_run_name_exactly_what_there_is(names, there):
    assert sorted(names) == sorted(there)


def test_every_optimiser_there_is_a_name_for_is_another_one():
    model = build_classifier(ModelConfig(encoder=stack_of_size("tiny")), classes=2, source=7)
    made = {
        frozenset(
            type(part).__name__ for part in Optimisers(model, OptimiserConfig(kind=name)).parts
        )
        for name in OPTIMISER_NAMES
    }
    assert made == {frozenset({"AdamW"}), frozenset({"AdamW", "Muon"})}
    assert len(made) == len(OPTIMISER_NAMES)


def test_every_job_is_called_by_its_name():
    assert {name: job.name for name, job in JOBS.items()} == {name: name for name in JOBS}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            f'job = "classify"\nformat = {FORMAT + 1}\nversion = "9.9"',
            f"config.toml: written by glassformer 9.9 in format {FORMAT + 1}, this version reads "
            f"up to {FORMAT}; upgrade glassformer",
        ),
        ("depth = 3", "config.toml: not the configuration of a run; name a run folder"),
        ('job = "classify"\nformat = "1"', "config.toml: not the configuration of a run; name a"),
        ("job = ", "config.toml: not valid TOML (Invalid value (at end of document)); fix that"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_refused(tmp_path, content, words):
    path = tmp_path / "config.toml"
    path.write_text(content)
    with pytest.raises(GlassformerError) as refusal:
        read_config_values(path)
    assert words in str(refusal.value)


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes(b'group = "caf\xe9"')
    with pytest.raises(GlassformerError, match=r"latin.toml: not valid TOML .*; fix that line"):
        read(DataConfig, path)


def test_one_word_is_a_list_of_one():
    assert build(TrainConfig, {"freeze": "encoder"}).freeze == ("encoder",)


def test_names_of_earlier_versions_are_read_with_a_warning(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[train.optimiser]\nrate = 0.5\n[model.encoder.attention]\ngroups = 2\n")
    with pytest.warns(DeprecationWarning, match=r"optimiser\.rate is called optimiser\.lr"):
        values = read_values(path)
    assert values["train"] == {"optimiser": {"lr": 0.5}}
    assert values["model"] == {"encoder": {"attention": {"kv_heads": 2}}}
    with pytest.warns(DeprecationWarning, match=r"attention\.groups is called attention\.kv_heads"):
        assert parse_setting("model.encoder.attention.groups=3")["model"]


@pytest.mark.parametrize("value", ['["a"', "[1, 2", "{a = 1", "[a, b]"])
def test_a_list_that_is_left_open_is_refused(value):
    with pytest.raises(GlassformerError, match="is no value; close its brackets and quotes"):
        parse_setting(f"decode.stop={value}")
