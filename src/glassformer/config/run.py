"""The configuration of a run: its config.toml."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassformer.config.checks import choose, require
from glassformer.config.data import DataConfig
from glassformer.config.model import ModelConfig
from glassformer.config.training import MachineConfig, TrainConfig
from glassformer.config.values import build, plain, read_values, to_toml
from glassformer.errors import GlassformerError

PRETRAIN_NAMES = ("no", "auto", "yes")
FORMAT = 3  # of a run folder; raised when older versions cannot read it


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """A job and all its settings.

    Args:
        task: The job's own settings, a record declared by the job.
        seed: Seed of every random choice.
        origin: The run it was initialised from.
        own_model: The name of a model that was given in Python.
        pretrain: Whether to pretrain on the same texts first: `no`, `yes`, or `auto`, which decides
            by a short trial. `classify` starts with `auto`.
        curve: Whether to add a learning curve to the report.
        baseline: Whether the report has a simple baseline, trained on the same rows.
        version: Of the program that wrote it.
    """

    job: str
    task: Any
    model: ModelConfig
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    machine: MachineConfig = field(default_factory=MachineConfig)
    seed: int = 0
    origin: str | None = None
    own_model: str | None = None
    pretrain: str = "no"
    curve: bool = False
    baseline: bool = True
    format: int = FORMAT
    version: str = ""

    def __post_init__(self) -> None:
        choose("pretrain", self.pretrain, PRETRAIN_NAMES)
        require(0 <= self.seed < 2**32, f"seed must lie in 0 ... {2**32 - 1}, got {self.seed}")

    @property
    def reads_first(self) -> bool:
        """Whether a first stage is certain, or may read texts of its own."""
        return self.pretrain == "yes" or (self.pretrain == "auto" and bool(self.data.unlabelled))

    def to_toml(self) -> str:
        """As the text of a TOML file."""
        return to_toml(plain(self))


def config_of(values: Mapping[str, Any], settings: type) -> Config:
    """A configuration from plain values, the job's own settings among them."""
    task = values.get("task", {})
    require(isinstance(task, Mapping), f"task must be a table of settings, got {task!r}")
    return build(Config, {**values, "task": build(settings, task, "task.")})


def read_config_values(path: Path) -> dict[str, Any]:
    """The values of a run's config.toml, if this version can read it."""
    values = read_values(path)
    if not isinstance(values.get("format"), int) or "job" not in values:
        raise GlassformerError(f"{path}: not the configuration of a run; name a run folder")
    if values["format"] > FORMAT:
        raise GlassformerError(
            f"{path}: written by glassformer {values.get('version')} in format "
            f"{values['format']}, this version reads up to {FORMAT}; upgrade glassformer"
        )
    return values
