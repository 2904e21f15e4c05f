"""A request to train, and the settings that follow from it.

Settings are merged, later ones win: the records' defaults, the job's, those of the run that modules
are copied from, the TOML file, the size, `--set`, and the other named options.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glassformer import __version__
from glassformer.config import SIZES, MachineConfig, build, choose, require, stack_of_size
from glassformer.config.run import FORMAT, Config, config_of
from glassformer.config.values import Values, merge_values, parse_setting, plain, read_values
from glassformer.data.catalog import CATALOG
from glassformer.data.rows import InMemory
from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.runs.folder import RunFolder
from glassformer.runs.own_model import OwnModel, called
from glassformer.runs.settings import (
    expand_shorthands,
    post_norm_defaults,
    refuse_pretraining,
    refuse_unused_settings,
)
from glassformer.tasks import JOBS
from glassformer.training.machine import choose_machine

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
HOW_LONG = ("steps", "epochs", "time", "flops")
TABLES = ("task", "model", "data", "train", "machine")
FACTS = ("job", "format", "version", "origin", "own_model")  # stored in a configuration, never set


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainRequest:
    """A training run as requested; every field is an option of `glassformer train`.

    `values` are settings as a recipe holds them, nested; `settings` are written key=value. `model`
    and rows that are held in memory can be given in Python only.
    """

    job: str
    data: tuple[str, ...]
    run: Path | None = None
    valid: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    header: bool | None = None
    group: str | None = None
    size: str | None = None
    config: Path | None = None
    values: Values = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    steps: int | None = None
    epochs: int | float | None = None
    time: str | int | float | None = None
    flops: int | float | None = None
    pretrain: bool = True
    seed: int | None = None
    origin: Path | None = None
    module: str | None = None
    device: str | None = None
    deterministic: bool = False
    curve: bool = False
    model: OwnModel | None = None

    def __post_init__(self) -> None:
        JOBS.refuse_unknown(self.job)
        given = [name for name in HOW_LONG if getattr(self, name) is not None]
        if len(given) > 1:
            raise GlassformerError(
                f"--{given[0]} and --{given[1]} both set the length of training; give one of them"
            )
        require(
            self.module is None or self.origin is not None,
            f"--module {self.module} needs a run to copy it from; add --from RUN",
        )

    def resolve(self, samples: Samples | None = None, *, provisional: bool = False) -> Config:
        """The configuration; with the samples that were read, what suits them as well.

        Args:
            provisional: Whether it will be resolved again with the samples, which may decide
                whether a setting has an effect.
        """
        overrides, options = self._overrides(), self._options()
        given = expand_shorthands(self.values, self._stacks)
        file, by_hand = self._from_file()
        values = merge_layers(file, self._of_size(), given, overrides, options)
        machine = build(MachineConfig, values.get("machine", {}), "machine.")
        accelerated = choose_machine(machine).device.type != "cpu"
        below = merge_layers(JOBS[self.job].defaults(accelerated), self._implied())
        facts = {"job": self.job, "format": FORMAT, "version": __version__}
        if self.origin is not None:
            refuse_own_model_of(self.origin, self.model)
            below = inheriting(below, self.origin)
            facts |= {"origin": str(self.origin)}
        if self.model is not None:
            facts |= {"own_model": called(self.model)}
        config = config_of(merge_layers(below, values) | facts, JOBS[self.job].settings)
        usual = self.size or self.origin or self.model or config.reads_first
        suited = None if usual else JOBS[self.job].suited
        if samples is not None and suited is not None:
            below = merge_layers(below, suited(samples, accelerated, values))
            config = config_of(merge_layers(below, values) | facts, JOBS[self.job].settings)
        if assumed := post_norm_defaults(config):
            values = merge_layers(below, assumed, values)
            config = config_of(values | facts, JOBS[self.job].settings)
        refuse_pretraining(config, self.origin, own_model=self.model is not None)
        if samples is not None or suited is None or not provisional:
            by_person = merge_layers(file if by_hand else {}, given, overrides)
            refuse_unused_settings(by_person, config, self.size)
        return config

    @property
    def name(self) -> str:
        """What its run folder is named after."""
        named = bool(self.data) and not isinstance(self.data[0], InMemory)
        return self.data[0] if named else self.job

    def command(self) -> str:
        """The equivalent command line, as far as options can express it."""
        words = ["glassformer", "train", self.job, *self.data]
        named = {name: getattr(self, name) for name in ("run", "group", "size", "config")}
        named |= {name: getattr(self, name) for name in (*HOW_LONG, "seed", "module", "device")}
        named |= {"from": self.origin}
        named |= {"columns": ",".join(f"{k}={v}" for k, v in self.columns.items()) or None}
        named |= {"header": {True: "yes", False: "no", None: None}[self.header]}
        lists = {name: getattr(self, name) for name in ("valid", "test", "unlabelled")}
        lists |= {"set": self.settings}
        lists |= {name: (value,) for name, value in named.items() if value is not None}
        words += [word for key, some in lists.items() for one in some for word in (f"--{key}", one)]
        flags = {"--no-pretrain": not self.pretrain, "--deterministic": self.deterministic}
        words += [flag for flag, is_set in (flags | {"--curve": self.curve}).items() if is_set]
        return shlex.join(map(str, words))

    def _implied(self) -> Values:
        """Defaults that follow from the data and the job."""
        implied: Values = {}
        if group := default_group(self.data):
            implied["data"] = {"group": group}
        if self.model is not None:
            implied["machine"] = {"compile": False}  # it may do what cannot be captured
            implied["data"] = implied.get("data", {}) | {"form": "padded"}  # the usual form
        elif JOBS[self.job].first_stage is not None and self.origin is None:
            implied["pretrain"] = "auto"
        return implied

    def _from_file(self) -> tuple[Values, bool]:
        """The settings of the file, and whether they are hand-written: a run's file lists all."""
        found = {} if self.config is None else read_values(self.config)
        values = {key: value for key, value in found.items() if key not in FACTS}
        return expand_shorthands(values, self._stacks), "format" not in found

    def _of_size(self) -> Values:
        """The settings of --size, for every stack of the job."""
        if self.size is None:
            return {}
        choose("size", self.size, tuple(SIZES))
        numbers = plain(stack_of_size(self.size))
        dial = {key: numbers[key] for key in ("dim", "depth")}
        dial["attention"] = {"heads": numbers["attention"]["heads"]}
        return {"model": dict.fromkeys(self._stacks, dial)}

    @property
    def _stacks(self) -> list[str]:
        """The stacks of the job's model."""
        has = JOBS[self.job].defaults(False).get("model", {})
        return [name for name in ("encoder", "decoder") if name in has]

    def _overrides(self) -> Values:
        """The settings written key=value."""
        values: Values = {}
        for setting in self.settings:
            parsed = parse_setting(setting)
            for key in FACTS:
                require(
                    key not in parsed,
                    f"--set {setting}: {key} is not a setting; "
                    + ("use --from RUN" if key == "origin" else "leave it out"),
                )
            values = merge(values, expand_shorthands(parsed, self._stacks))
        return values

    def _options(self) -> Values:
        """The settings of the named options that were given."""
        tables: dict[str, Values] = {
            "data": {
                "files": list(self.data),
                "valid": list(self.valid) or None,
                "test": list(self.test) or None,
                "unlabelled": list(self.unlabelled) or None,
                "columns": dict(self.columns) or None,
                "header": self.header,
                "group": self.group,
            },
            "train": {name: getattr(self, name) for name in HOW_LONG}
            | {"time": seconds(self.time)},
            "machine": {"device": self.device, "deterministic": self.deterministic or None},
        }
        given = {
            table: {key: value for key, value in settings.items() if value is not None}
            for table, settings in tables.items()
        }
        single = {
            "seed": self.seed,
            "curve": self.curve or None,
            "pretrain": None if self.pretrain else "no",
        }
        values: Values = {table: settings for table, settings in given.items() if settings}
        return values | {key: value for key, value in single.items() if value is not None}


def merge_layers(*layers: Values) -> Values:
    """Merge settings; later layers win."""
    values: Values = {}
    for layer in layers:
        values = merge(values, layer)
    return values


def merge(below: Values, above: Values) -> Values:
    """Merge two layers; a length of training replaces any other kind of length.

    >>> merge({"train": {"epochs": 8.0, "clip": 1.0}}, {"train": {"steps": 5}})
    {'train': {'clip': 1.0, 'steps': 5}}
    """
    for table in TABLES:
        settings = above.get(table, {})
        require(
            isinstance(settings, Mapping), f"{table} must be a table of settings, got {settings!r}"
        )
    if any(name in above.get("train", {}) for name in HOW_LONG):
        old = below.get("train", {}).items()
        below = below | {"train": {key: value for key, value in old if key not in HOW_LONG}}
    return merge_values(below, above)


def default_group(data: tuple[str, ...]) -> str | None:
    """The group column of a data set from the catalog."""
    named = [CATALOG[name] for name in data if name in CATALOG and not Path(name).exists()]
    return named[0].group if len(named) == len(data) and named else None


def inheriting(defaults: Values, origin: Path) -> Values:
    """The defaults of a job with the model and tokenizer of the run that modules are copied from.

    Each of its stacks replaces the default one: a setting that it leaves out is none there. A
    module that is not in the defaults is not copied.
    """
    config = RunFolder(origin).config()
    modules = {"frontend", "members", "pool", "scale", *defaults["model"]}
    model = plain(config.model)
    if config.model.encoder is None and "decoder" not in defaults["model"]:
        model["encoder"] = model["decoder"]  # a language model, used to read
    model = {key: value for key, value in model.items() if key in modules}
    data = defaults.get("data", {}) | {"tokenizer": plain(config.data.tokenizer)}
    return defaults | {"model": defaults["model"] | model, "data": data}


def refuse_own_model_of(origin: Path, model: object) -> None:
    """Refuse weights of a person's own model for one of the job's."""
    own = RunFolder(origin).config().own_model
    require(
        not own or model is not None,
        f"--from {origin}: its model is your own, {own}; give that in Python, as model=...",
    )


def seconds(text: str | int | float | None) -> float | None:
    """Seconds of a time such as 90, 90s, 10m, 1.5h or 1h30m.

    >>> seconds("1h30m")
    5400.0
    """
    if text is None or isinstance(text, int | float):
        return None if text is None else float(text)
    bare = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", bare):
        return float(bare)
    if not re.fullmatch(r"(\d+(\.\d+)?[smhd])+", bare):
        raise GlassformerError(f"--time {text!r} is not a time; write 90s, 10m or 1h30m")
    return sum(float(n) * UNITS[u] for n, u in re.findall(r"(\d+(?:\.\d+)?)([smhd])", bare))
