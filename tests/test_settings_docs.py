"""docs/reference/settings.md lists every setting there is, with its default and its meaning."""

import re
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from settings import (
    chinese,
    chinese_settings_page,
    flat,
    meaning,
    settings_page,
    texts,
    written,
)
from typer.main import get_command

from glassformer.cli.app import app
from glassformer.config.data import FORM_NAMES, TOKENIZER_NAMES
from glassformer.config.decoding import METHOD_NAMES, PENALTY_NAMES, STOPPING_NAMES
from glassformer.config.layers import (
    FEEDFORWARD_NAMES,
    KIND_NAMES,
    NORM_NAMES,
    POSITION_NAMES,
    SCALING_NAMES,
)
from glassformer.config.model import (
    BLOCK_NAMES,
    FRONTEND_NAMES,
    ORDER_NAMES,
    POOL_NAMES,
    STACK_NAMES,
)
from glassformer.config.run import Config
from glassformer.config.training import (
    DEVICE_NAMES,
    OPTIMISER_NAMES,
    PRECISION_NAMES,
    SCHEDULE_NAMES,
    TrainConfig,
)
from glassformer.runs.request import FACTS
from glassformer.tasks import BUILT_IN, JOBS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
ROOT = DOCS.parent
OLD = {"dev", "tour"}  # written once, or tested by themselves
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if not OLD & {*path.parts}]
PAGES += [ROOT / "README.md", ROOT / "README.zh.md", ROOT / "CONTRIBUTING.md"]
OTHER_NAMES = {
    *("model.kind", "train.optimiser.rate"),  # a shorthand, and a name of earlier versions
    *("model.safetensors", "train.en", "train.de", "data.md", "data.zh.md"),  # files
    # Of a task in Python:
    *("task.vocabulary", "task.target_vocabulary", "task.classes", "task.bins", "task.factor"),
    *("task.config", "task.config.model", "task.config.model.encoder.dim"),
}
OF_OTHERS = re.compile(
    "torchrun|SBATCH|Slurm|requeue|rdzv|tensorboard|^RUN "
)  # lines with options of other commands
CHOICES = {
    "model.pool": POOL_NAMES,
    "model.frontend.kind": FRONTEND_NAMES,
    "model.encoder.kind": STACK_NAMES,
    "model.encoder.block": BLOCK_NAMES,
    "model.encoder.order": ORDER_NAMES,
    "model.encoder.norm.kind": NORM_NAMES,
    "model.encoder.position.kind": POSITION_NAMES,
    "model.encoder.position.scaling.kind": SCALING_NAMES,
    "model.encoder.attention.kind": KIND_NAMES,
    "model.encoder.feedforward.kind": FEEDFORWARD_NAMES,
    "data.tokenizer.kind": TOKENIZER_NAMES,
    "data.form": FORM_NAMES,
    "train.optimiser.kind": OPTIMISER_NAMES,
    "train.optimiser.schedule": SCHEDULE_NAMES,
    "machine.device": DEVICE_NAMES,
    "machine.precision": PRECISION_NAMES,
    "task.decode.method": METHOD_NAMES,
    "task.decode.beam.penalty": PENALTY_NAMES,
    "task.decode.beam.stopping": STOPPING_NAMES,
}


def settings_of(kind, prefix=""):
    """Every setting of a record and of those inside it, with its default."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        kinds = get_args(hints[field.name]) or (hints[field.name],)
        inside = next((one for one in kinds if is_dataclass(one)), None)
        name = f"{prefix}{field.name}"
        if inside is not None:
            yield from settings_of(inside, f"{name}.")
        elif name != "task" and name not in FACTS:
            made = field.default_factory is not MISSING
            yield name, field.default_factory() if made else field.default


def settings(job):
    return dict([*settings_of(Config), *settings_of(JOBS[job].settings, "task.")])


def listed(job):
    """The settings on the page that a job has, with their defaults."""
    found = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        heading, rows = section.split("\n", 1)
        jobs = re.findall(r"\w+", heading.partition(" of ")[2])
        if heading.startswith("Defaults of") or (jobs and job not in jobs):
            continue
        for table in re.findall("`([^`]*)`", heading) or [""]:
            for name, default in re.findall(
                r"^\| `(\w+)` \| `?(.*?)`? \|", rows, flags=re.MULTILINE
            ):
                found[f"{table}.{name}".lstrip(".")] = default
    return found


def encoders(names):
    """Settings by name, without those of a decoder, which are the same as an encoder's."""
    return {name: value for name, value in names.items() if not name.startswith("model.decoder")}


def test_the_page_is_what_the_records_say():
    assert settings_page() == PAGE, "make docs writes it anew"


def test_the_page_in_chinese_has_every_setting_as_it_is_now():
    page = (DOCS / "reference" / "settings.zh.md").read_text(encoding="utf-8")
    assert chinese_settings_page() == page, "make docs writes it anew"
    names = r"^\| `(\w+)` \|"
    assert re.findall(names, page, flags=re.MULTILINE) == re.findall(
        names, PAGE, flags=re.MULTILINE
    )


def test_a_text_that_has_changed_must_be_translated_anew(monkeypatch):
    translations = chinese().translations
    assert {*translations} == {*texts()}
    words = [text for text in translations.values() if not re.fullmatch(r"`[^`]+`", text)]
    assert all(re.search(r"[\u4e00-\u9fff]", text) for text in words)
    monkeypatch.setattr(TrainConfig, "__doc__", TrainConfig.__doc__.replace("Largest", "Greatest"))
    with pytest.raises(ValueError, match="no docstring says 'Largest gradient norm"):
        chinese_settings_page()
    with pytest.raises(ValueError, match="translate 'Greatest gradient norm"):
        settings_page(chinese())


def test_a_translation_keeps_all_code_and_years():
    for english, text in chinese().translations.items():
        code = {*re.findall(r"`[^`]+`", english)}
        assert code <= {*re.findall(r"`[^`]+`", text)}, english
        years = {*re.findall(r"\b(?:19|20)\d\d\b", english)}
        assert years <= {*re.findall(r"(?:19|20)\d\d", text)}, english


@dataclass
class Sound:
    """Sounds.

    Args:
        rate: Samples a second,
            at most. See docs/guides/custom-modalities.md.
    """

    rate: int = 1


@dataclass
class Speech(Sound):
    """Speech.

    Args:
        lowercase: Whether it is lowercased.
    """

    lowercase: bool = True
    silent: bool = False


def test_a_record_says_what_its_settings_mean_or_the_one_it_extends_does():
    assert meaning(Speech, "lowercase") == "Whether it is lowercased."
    assert (
        meaning(Speech, "rate")
        == "Samples a second, at most. See [custom-modalities.md](../guides/custom-modalities.md)."
    )
    with pytest.raises(ValueError, match="say what silent means in the Args of Speech"):
        meaning(Speech, "silent")


@pytest.mark.parametrize("job", BUILT_IN)
def test_every_setting_is_listed_with_its_default(job):
    there = {name: written(value) for name, value in encoders(settings(job)).items()}
    page = encoders(listed(job))
    if not any(name.startswith("task.target.") for name in there):
        page = {name: value for name, value in page.items() if "task.target" not in name}
    assert page == there


@pytest.mark.parametrize("job", BUILT_IN)
def test_what_a_job_sets_otherwise_is_listed(job):
    usual = settings(job)
    here, there = (flat(JOBS[job].defaults(gpu)) for gpu in (False, True))
    both = {
        name: (here.get(name, usual[name]), there.get(name, usual[name]))
        for name in here.keys() | there.keys()
    }
    other = {n: pair for n, pair in both.items() if pair != (usual[n], usual[n])}
    rows = re.findall(rf"^\| {job} \| `(.*?)` \| `(.*?)` \| `(.*?)` \|", PAGE, flags=re.MULTILINE)
    assert {name: (a, b) for name, a, b in rows} == {
        name: tuple(map(written, pair)) for name, pair in other.items()
    }


def row_of(setting):
    """What the page says about a setting of any job."""
    table, _, name = setting.rpartition(".")
    section = re.search(rf"^## [^\n]*`{table}`.*?(?=^## )", PAGE, flags=re.MULTILINE | re.DOTALL)[0]
    return re.search(rf"^\| `{name}` \|.*", section, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("setting", CHOICES)
def test_every_choice_is_named(setting):
    assert {*CHOICES[setting]} <= {*re.findall(r"[\w-]+", row_of(setting))}


def settings_in(text):
    tables = "model|data|train|machine|task"
    return re.findall(rf"(?<![\w./\"])((?:{tables})\.[a-z_0-9.]*[a-z_0-9])", text)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_setting_that_a_page_names_exists(path):
    known = {name for job in BUILT_IN for name in settings(job)} | OTHER_NAMES
    known |= {name.replace("model.encoder.", "model.") for name in known}  # of every stack
    tables = {name.rpartition(".")[0] for name in known}
    named = dict.fromkeys(settings_in(path.read_text(encoding="utf-8")))
    assert [name for name in named if name not in known | tables] == []


def options_of(command):
    yield from (name for parameter in command.params for name in parameter.opts)
    yield from (name for parameter in command.params for name in parameter.secondary_opts)
    for other in getattr(command, "commands", {}).values():
        yield from options_of(other)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_option_that_a_page_names_exists(path):
    known = {*options_of(get_command(app)), "--help"}
    lines = path.read_text(encoding="utf-8").splitlines()
    ours = "\n".join(line for line in lines if not OF_OTHERS.search(line))
    named = re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", ours)
    assert [name for name in dict.fromkeys(named) if name not in known] == []
