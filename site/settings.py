"""docs/reference/settings.md: every setting with its default and its meaning, from the records.

A record is a dataclass of the configuration; the `Args:` of its docstring say what each of its
settings means. A setting without a word there is an error.

The page in Chinese has the same tables. `settings.zh.toml` translates each English text; a text
without a translation is an error, and so is a translation of a text that no longer exists.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from inspect import getdoc
from pathlib import Path
from typing import Any, get_args, get_type_hints

from glassformer.config.run import Config
from glassformer.runs.request import FACTS
from glassformer.tasks import BUILT_IN, JOBS
from glassformer.tasks.classify.sequences import SequenceInputs
from glassformer.tasks.classify.sounds import SoundInputs
from glassformer.tasks.classify.suited import (
    FEW,
    FEWER,
    FEWEST,
    MANY,
    MOST,
    by_both,
    by_characters,
    by_words,
)
from glassformer.tasks.classify.texts import TextInputs
from glassformer.tasks.recognise.images import ImageInputs
from glassformer.tasks.recommend.factors import Factors
from glassformer.tasks.recommend.sasrec import SasRec
from glassformer.training.setup import FEWEST_STEPS

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "reference" / "settings.md"
CHINESE_PAGE = PAGE.with_name("settings.zh.md")
INTRODUCTION = """\
# Every setting

Give a setting as `--set train.clip=0.5`, in Python as `set={"train.clip": 0.5}`, or in a TOML file
with `--config`. The headings name the table that a setting belongs to: `clip` under `train` is
`train.clip`. A decoder has the tables of an encoder. A setting of a stack written right under
`model` holds for every stack of the job: `model.dim=64`, `model.position=alibi`. `none` stands for
no value. [From raw files to a model](../guides/training.md) explains the important settings. How
long a run trains, and which defaults differ between jobs, is [at the end](#how-long-a-run-trains).

This page is generated from the code (`make docs`).
"""
LENGTHS = """\
## How long a run trains

With none of `train.steps`, `train.epochs`, `train.time` and `train.flops`, a run trains for this
many epochs, or for {least} steps if that is more. A classifier of {rows:,} texts or more
[on a CPU](../guides/classifying.md#what-is-trained) trains for its epochs in any case.
"""
MEANING = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)
DOCUMENT = re.compile(r"\bdocs/([\w-]+/([\w.-]+\.md))")


@dataclass(frozen=True, kw_only=True)
class Language:
    """What a page says that is in no docstring, and translations of what is in them.

    Attributes:
        run: The heading of the settings that are in no table.
        jobs: What follows the names of tables that only some jobs have.
        both: What stands before the last of several jobs.
        required: The default of a setting that has none.
        translations: By English text; none on the page in English.
    """

    introduction: str
    run: str
    jobs: str
    comma: str
    both: str
    required: str
    columns: Sequence[str]
    lengths: str
    length_columns: Sequence[str]
    otherwise: str
    job_columns: Sequence[str]
    translations: Mapping[str, str] | None = None

    def say(self, text: str) -> str:
        """A text of a docstring in this language."""
        if self.translations is None:
            return text
        if text not in self.translations:
            raise ValueError(f"site/settings.zh.toml: translate {text!r}")
        return self.translations[text]

    def listed(self, names: list[str]) -> str:
        """Names as a sentence has them."""
        return self.both.join(filter(None, [self.comma.join(names[:-1]), names[-1]]))


ENGLISH = Language(
    introduction=INTRODUCTION,
    run="The run",
    jobs=" of {}",
    comma=", ",
    both=" and ",
    required="required",
    columns=("setting", "default", "what it does"),
    lengths=LENGTHS,
    length_columns=("job", "what", "epochs"),
    otherwise="Defaults of the jobs",
    job_columns=("job", "setting", "on a CPU", "on a GPU"),
)


def chinese() -> Language:
    """The page in Chinese."""
    found = tomllib.loads((HERE / "settings.zh.toml").read_text(encoding="utf-8"))
    return Language(**found["page"], translations=found["texts"])


@dataclass
class Table:
    """A record, the names under which a configuration has it, and the jobs that alone do."""

    record: type
    names: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)

    def heading(self, language: Language) -> str:
        """Its names; and its jobs, unless every job has it."""
        names = language.comma.join(f"`{name}`" for name in self.names if name) or language.run
        everywhere = not all(name.startswith("task") for name in self.names)
        return names if everywhere else names + language.jobs.format(language.listed(self.jobs))


def settings_page(language: Language = ENGLISH) -> str:
    """The whole page."""
    sections = [section(table, language) for table in tables()]
    rows = [row for job in BUILT_IN for row in otherwise(job)]
    lengths = [header(language.length_columns)]
    lengths += [f"| {job} | {language.say(what)} | {count:g} |" for job, what, count in epochs()]
    last = [f"## {language.otherwise}", "", header(language.job_columns), *rows]
    parts = [
        language.introduction.strip(),
        *sections,
        language.lengths.format(least=FEWEST_STEPS, rows=FEWEST).strip(),
        "\n".join(lengths),
        "\n".join(last),
    ]
    return "\n\n".join(parts) + "\n"


def chinese_settings_page() -> str:
    """The whole page in Chinese."""
    language = chinese()
    left_over = {*(language.translations or {})} - {*texts()}
    if left_over:
        raise ValueError(f"site/settings.zh.toml: no docstring says {min(left_over)!r} any more")
    return settings_page(language)


def texts() -> Iterator[str]:
    """Every text of the page that has a translation."""
    for table in tables():
        yield from summary_of(table)
        yield from (said(table.record, one.name) for one in own_settings(table.record))
    yield from (what for _, what, _ in epochs())


def tables() -> list[Table]:
    """Every record: those of all jobs, then those of each."""
    found: dict[type, Table] = {}
    collect(found, Config, "")
    for job in BUILT_IN:
        collect(found, JOBS[job].settings, "task", job)
    return list(found.values())


def collect(found: dict[type, Table], record: type, name: str, job: str | None = None) -> None:
    """Add a record and those inside it."""
    table = found.setdefault(record, Table(record))
    if name in table.names if job is None else job in table.jobs:
        return
    table.names += [name] if name not in table.names else []
    table.jobs += [] if job is None else [job]
    if name == "model.decoder":  # its tables are those of an encoder
        return
    for setting, inside in nested(record).items():
        collect(found, inside, f"{name}.{setting}".lstrip("."), job)


def nested(record: type) -> dict[str, type]:
    """The records inside a record, by name."""
    hints = get_type_hints(record)
    kinds = {one.name: get_args(hints[one.name]) or (hints[one.name],) for one in fields(record)}
    return {name: one for name, parts in kinds.items() for one in parts if is_dataclass(one)}


def section(table: Table, language: Language) -> str:
    """A table with a row for each setting of a record."""
    rows = [
        f"| `{one.name}` | {shown(default(one), language)} | "
        f"{meaning(table.record, one.name, language)} |"
        for one in own_settings(table.record)
    ]
    summary = [line for text in summary_of(table) for line in (language.say(text), "")]
    heading = f"## {table.heading(language)}"
    return "\n".join([heading, "", *summary, header(language.columns), *rows])


def header(columns: Sequence[str]) -> str:
    """The head of a table."""
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def own_settings(record: type) -> list["Field[Any]"]:
    """The settings of a record that are no records."""
    left_out = {*nested(record), *(("task", *FACTS) if record is Config else ())}
    return [one for one in fields(record) if one.name not in left_out]


def summary_of(table: Table) -> list[str]:
    """What a record is, in a sentence; nothing for the run and for a job, whose names say it."""
    of_itself = {*table.names} & {"", "task"}
    return [] if of_itself else [(getdoc(table.record) or "").split("\n\n")[0]]


def meaning(record: type, name: str, language: Language = ENGLISH) -> str:
    """What a setting means, with links."""
    return DOCUMENT.sub(r"[\2](../\1)", language.say(said(record, name)))


def said(record: type, name: str) -> str:
    """What the docstring of a record, or of one that it extends, says about a setting."""
    for kind in record.__mro__:
        found = dict(MEANING.findall(getdoc(kind) or ""))
        if name in found:
            return " ".join(found[name].split())
    raise ValueError(f"say what {name} means in the Args of {record.__name__}")


def default(one: "Field[Any]") -> Any:
    """The default of a field; MISSING where it has none."""
    return one.default if one.default_factory is MISSING else one.default_factory()


def shown(value: Any, language: Language = ENGLISH) -> str:
    """A default, as code."""
    return language.required if value is MISSING else f"`{written(value)}`"


def written(value: Any) -> str:
    """A value as it is given in a setting."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(map(str, value))}]"
    return "required" if value is MISSING else str(value)


def epochs() -> Iterator[tuple[str, str, float]]:
    """Job, inputs and epochs of a run of which no length is given."""
    suited = {
        "phrases": by_characters(),
        f"sentences, up to {FEWER:,} characters": by_both(epochs=6.0),
        f"sentences, up to {FEW:,} characters": by_both(epochs=4.0),
        f"other texts, up to {MANY:,} characters": by_words(many=False),
        f"texts of up to {MOST:,} characters": by_words(many=True),
    }
    yield "classify", "texts", TextInputs.epochs
    for what, values in suited.items():
        yield "classify", f"on a CPU, {what}", values["train"]["epochs"]
    yield "classify", "recordings", SoundInputs.epochs
    yield "classify", "sequences of numbers", SequenceInputs.epochs
    yield "recognise", "images", ImageInputs.epochs
    for job in ("pretrain", "generate", "transcribe", "translate"):
        yield job, "all", JOBS[job].task.default_epochs
    yield "recommend", "`task.method=factors`", Factors.default_epochs
    yield "recommend", "`task.method=sasrec`", SasRec.default_epochs


def otherwise(job: str) -> Iterator[str]:
    """A row for each setting whose default a job changes."""
    usual = {
        f"{name}.{one.name}".lstrip("."): default(one)
        for table in tables()
        for name in table.names
        for one in fields(table.record)
    }
    cpu, gpu = (flat(JOBS[job].defaults(accelerated)) for accelerated in (False, True))
    for setting in cpu | gpu:
        general = usual[setting.replace("model.decoder.", "model.encoder.")]
        values = [found.get(setting, general) for found in (cpu, gpu)]
        if values != [general, general]:
            yield f"| {job} | `{setting}` | {' | '.join(map(shown, values))} |"


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by their full names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= (
            flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return found
