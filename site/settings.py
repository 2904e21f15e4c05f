"""docs/reference/settings.md: every setting with its default and its meaning, from the records.

A record is a dataclass of the configuration; the `Args:` of its docstring say what each of its
settings means. A setting without a word there is an error.
"""

import re
from collections.abc import Iterator, Mapping
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

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
INTRODUCTION = """\
# Every setting

Give a setting as `--set train.clip=0.5`, in Python as `set={"train.clip": 0.5}`, or in a TOML file
with `--config`. The headings name the table that a setting belongs to: `clip` under `train` is
`train.clip`. A decoder has the tables of an encoder; right under `model`, their settings hold for
every stack of the job: `model.dim=64`, `model.position=alibi`. `none` stands for no value.
[training.md](../guides/training.md) explains the important settings; how long a run trains and
what a job sets otherwise is [at the end](#how-long-a-run-trains). `make docs` writes this page from
the records in `src/glassformer/config/` and from those of the jobs.
"""
COLUMNS = "| setting | default | what it does |\n|---|---|---|"
LENGTHS = f"""\
## How long a run trains

With none of `train.steps`, `train.epochs`, `train.time` and `train.flops`, a run trains for this
many epochs, or for {FEWEST_STEPS} steps if that is more. A classifier of {FEWEST:,} texts or more
[on a CPU](../guides/classifying.md#what-is-trained) trains for its epochs in any case.

| job | what | epochs |
|---|---|---|"""
OTHERWISE = (
    "## What jobs set otherwise\n\n| job | setting | on a CPU | on a GPU |\n|---|---|---|---|"
)
MEANING = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)
DOCUMENT = re.compile(r"\bdocs/([\w-]+/([\w-]+\.md))")


@dataclass
class Table:
    """A record, the names under which a configuration has it, and the jobs that alone do."""

    record: type
    names: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)

    @property
    def heading(self) -> str:
        """Its names; and its jobs, unless every job has it."""
        names = ", ".join(f"`{name}`" for name in self.names if name) or "The run"
        everywhere = not all(name.startswith("task") for name in self.names)
        return names if everywhere else f"{names} of {listed(self.jobs)}"


def settings_page() -> str:
    """The whole page."""
    sections = [section(table) for table in tables()]
    lengths = "\n".join([LENGTHS, *(f"| {job} | {what} | {n:g} |" for job, what, n in epochs())])
    rows = [row for job in BUILT_IN for row in otherwise(job)]
    parts = [INTRODUCTION.strip(), *sections, lengths, "\n".join([OTHERWISE, *rows])]
    return "\n\n".join(parts) + "\n"


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


def section(table: Table) -> str:
    """A table with a row for each setting of a record."""
    record = table.record
    left_out = {*nested(record), *(("task", *FACTS) if record is Config else ())}
    own = [one for one in fields(record) if one.name not in left_out]
    rows = [
        f"| `{one.name}` | {written(default(one))} | {meaning(record, one.name)} |" for one in own
    ]
    summary = [] if {*table.names} & {"", "task"} else [(getdoc(record) or "").split("\n\n")[0], ""]
    return "\n".join([f"## {table.heading}", "", *summary, COLUMNS, *rows])


def meaning(record: type, name: str) -> str:
    """What a setting means, from the docstring of its record or of one that this extends."""
    for kind in record.__mro__:
        found = dict(MEANING.findall(getdoc(kind) or ""))
        if name in found:
            return DOCUMENT.sub(r"[\2](../\1)", " ".join(found[name].split()))
    raise ValueError(f"say what {name} means in the Args of {record.__name__}")


def default(one: "Field[Any]") -> Any:
    """The default of a field; MISSING where it has none."""
    return one.default if one.default_factory is MISSING else one.default_factory()


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
            yield f"| {job} | `{setting}` | {' | '.join(map(written, values))} |"


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by their full names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= (
            flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return found


def listed(names: list[str]) -> str:
    """Names as a sentence has them."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
