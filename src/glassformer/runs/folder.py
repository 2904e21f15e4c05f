"""A run folder: what lies where.

config.toml          what was asked for, all settings settled
intake.json          columns, rows by part, and what was left out
tokenizer.json       and whatever else the job learned before training
data/                samples and their index
initial.safetensors  weights it began with, where parts came from another run
checkpoints/         to go on from
metrics.jsonl        what happened, a line an event
board/               the same for TensorBoard
model.safetensors    the trained model
report.json, .html   how good it is
pretrain/            the run that learned the texts first, where there was one
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.config.run import Config, config_of, read_config_values
from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS
from glassformer.tasks.job import Job
from glassformer.training.weights import write_text


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run lives; `samples` is where its data are, if not in it."""

    path: Path
    samples: Path | None = None

    @property
    def config_file(self) -> Path:
        return self.path / "config.toml"

    @property
    def data(self) -> Path:
        return self.samples or self.path / "data"

    @property
    def initial(self) -> Path:
        return self.path / "initial.safetensors"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def model(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def report(self) -> Path:
        return self.path / "report.json"

    def config(self) -> Config:
        """What was asked for."""
        if not self.config_file.exists():
            hint = "resume or train it" if self.path.is_dir() else "check the path"
            raise GlassformerError(f"{self.path}: not a run folder, it has no config.toml; {hint}")
        values = read_config_values(self.config_file)
        if values["job"] not in JOBS:
            raise GlassformerError(
                f"{self.config_file}: unknown job {values['job']!r}; the jobs are {', '.join(JOBS)}"
            )
        return config_of(values, JOBS[values["job"]].settings)

    @property
    def pretrain(self) -> "RunFolder":
        """The run that learned the texts first, over the same data."""
        return RunFolder(self.path / "pretrain", self.data)

    def write_config(self, config: Config) -> None:
        """Replace config.toml."""
        write_text(config.to_toml(), self.config_file)

    def job(self, config: Config, data: Path | None) -> Job[Any, Any, Any]:
        """The run's job, over these data."""
        return JOBS[config.job](config, self.path, data)

    def intake(self) -> dict[str, Any]:
        """What is known about the data that came in."""
        path = self.path / "intake.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
