"""What a person asks for, and the settings that follow from it.

Settings are laid over one another, later ones win: the records' defaults, the job's, the size, the
TOML file, `--set`, and the named options.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassformer import __version__
from glassformer.config import SIZES, choose, require, stack_of_size
from glassformer.config.run import FORMAT, Config, config_of
from glassformer.config.training import MachineConfig
from glassformer.config.values import Values, laid_over, parse_setting, plain, read_values
from glassformer.data.catalog import CATALOG
from glassformer.errors import GlassformerError, unknown
from glassformer.runs.folder import RunFolder
from glassformer.tasks import JOBS
from glassformer.training.machine import choose_machine

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A training that a person asks for; every field is an option of `glassformer train`.

    `values` are settings as a recipe holds them, below the file and all others.
    """

    job: str
    data: tuple[str, ...]
    run: Path | None = None
    valid: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    size: str | None = None
    config: Path | None = None
    values: Values = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    steps: int | None = None
    epochs: float | None = None
    time: str | float | None = None
    pretrain: bool = True
    seed: int | None = None
    origin: Path | None = None
    part: str | None = None
    device: str | None = None
    deterministic: bool = False
    curve: bool = False

    def __post_init__(self) -> None:
        if self.job not in JOBS:
            raise GlassformerError(unknown("job", self.job, JOBS))
        given = [n for n in ("steps", "epochs", "time") if getattr(self, n) is not None]
        require(
            len(given) < 2,
            f"--{given[0]} and --{given[-1]} both say how long; give one of them" if given else "",
        )
        require(
            self.part is None or self.origin is not None,
            f"--part {self.part} needs a run to take it from; add --from RUN",
        )

    def settle(self) -> Config:
        """The configuration, complete but for what the data decide."""
        values = self._values()
        accelerated = choose_machine(_machine(values)).device.type != "cpu"
        below = JOBS[self.job].defaults(accelerated)
        if self.origin is not None:
            below = laid_over(below, inherited(self.origin))
        if self.size is not None:
            choose("size", self.size, tuple(SIZES))
            numbers = plain(stack_of_size(self.size))
            dial = {key: numbers[key] for key in ("dim", "depth")}
            heads = {"attention": {"heads": numbers["attention"]["heads"]}}
            stacks = [name for name in ("encoder", "decoder") if name in below["model"]]
            below = laid_over(below, {"model": dict.fromkeys(stacks, dial | heads)})
        if any(key in values.get("train", {}) for key in ("steps", "epochs", "time")):
            for key in ("steps", "epochs", "time"):
                below.get("train", {}).pop(key, None)
        facts = {"job": self.job, "format": FORMAT, "version": __version__}
        return config_of(laid_over(below, values) | facts, JOBS[self.job].settings)

    def _values(self) -> Values:
        """What the person said, as nested values."""
        values = dict(self.values)
        if self.config is not None:
            values = laid_over(values, read_values(self.config))
        for key in ("job", "format", "version"):
            values.pop(key, None)
        for setting in self.settings:
            values = laid_over(values, parse_setting(setting))
        options: dict[str, Values] = {
            "data": {
                "files": list(self.data),
                "valid": list(self.valid),
                "test": list(self.test),
                "columns": dict(self.columns),
                "group": self.group or usual_group(self.data),
            },
            "train": {"steps": self.steps, "epochs": self.epochs, "time": seconds(self.time)},
            "machine": {"device": self.device, "deterministic": self.deterministic},
        }
        named = {
            table: {key: value for key, value in said.items() if value}
            for table, said in options.items()
        }
        if any(named["train"]):
            for key in ("steps", "epochs", "time"):
                values.get("train", {}).pop(key, None)
        if self.seed is not None:
            values["seed"] = self.seed
        if self.origin is not None:
            values["origin"] = str(self.origin)
        if self.curve:
            values["curve"] = True
        return laid_over(values, {table: said for table, said in named.items() if said})


def usual_group(data: tuple[str, ...]) -> str | None:
    """The column by which a set of the catalog is to be split."""
    named = [CATALOG[name] for name in data if name in CATALOG and not Path(name).exists()]
    return named[0].group if len(named) == len(data) and named else None


def inherited(origin: Path) -> Values:
    """The settings that must agree with the run parts are taken from: its model and its tokens."""
    config = RunFolder(origin).config()
    stack = plain(config.model)
    return {
        "model": {key: stack[key] for key in ("encoder", "frontend", "scale") if key in stack},
        "data": {"tokenizer": plain(config.data.tokenizer)},
    }


def seconds(text: str | float | None) -> float | None:
    """A time such as 90, 90s, 10m, 1.5h or 1h30m, in seconds.

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


def _machine(values: Mapping[str, Any]) -> MachineConfig:
    from glassformer.config.values import build

    return build(MachineConfig, values.get("machine", {}), "machine.")
