"""A run folder: what lies where.

config.toml          what was asked for, all settings settled
command.txt          the same, as typed on a command line
intake.json          columns, rows by part, and what was left out
tokenizer.json       and whatever else the job learned before training
data/                samples and their index
initial.safetensors  weights it began with, where parts came from another run
checkpoints/         to go on from
metrics.jsonl        what happened, a line an event
board/               the same for TensorBoard
model.safetensors    the trained model
report.json, .html   how good it is
checksums.json       by which files that changed are known
pretrain/            the run that learned the texts first, where there was one
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from safetensors import SafetensorError, safe_open

from glassformer import files
from glassformer.config.run import Config, config_of, read_config_values
from glassformer.config.values import Record, build, fitting
from glassformer.data.splitter import Skipped
from glassformer.errors import GlassformerError
from glassformer.files import write_text
from glassformer.tasks import JOBS
from glassformer.tasks.job import JobTask
from glassformer.tasks.reporter import Reporter

INTAKE = {  # what intake.json holds
    "columns": dict[str, str],
    "counts": dict[str, int],
    "skipped": dict[str, Skipped],
    "shared": dict[str, Skipped],
    "back_translated": tuple[str, ...],
}


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

    @property
    def is_finished(self) -> bool:
        """Whether there is a report, and a model that can be read."""
        return self.report.exists() and is_whole(self.model)

    def config(self) -> Config:
        """What was asked for."""
        self.refuse_special_files()
        if not self.config_file.exists():
            if not self.path.exists():
                raise GlassformerError(f"{self.path}: not found; check the path")
            raise GlassformerError(
                f"{self.path}: not a run folder, it has no config.toml; name one that "
                f"`glassformer train` made"
            )
        values = read_config_values(self.config_file)
        job = values["job"]
        if not isinstance(job, str) or job not in JOBS:
            raise GlassformerError(
                f"{self.config_file}: unknown job {job!r}; the jobs are {', '.join(JOBS)}"
            )
        try:
            return config_of(values, JOBS[job].settings)
        except GlassformerError as error:
            raise GlassformerError(f"{self.config_file}: {error}") from None

    def refuse_special_files(self) -> None:
        """What is neither a file nor a folder, such as a pipe, would be waited for without end."""
        for path in self.path.rglob("*"):
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise GlassformerError(
                    f"{path}: neither a file nor a folder; remove it, or copy the run again"
                )

    @property
    def pretrain(self) -> "RunFolder":
        """The run that learned the texts first, over the same data."""
        return RunFolder(self.path / "pretrain", self.data)

    def write_config(self, config: Config) -> None:
        """Replace config.toml."""
        write_text(config.to_toml(), self.config_file)

    def open_task(self, config: Config, data: Path | None) -> JobTask[Any, Any, Any]:
        """The run's task, over these data."""
        try:
            return JOBS[config.job].task(config, self.path, data)
        except (OSError, ValueError) as error:
            where = self.path if data is None else data
            raise GlassformerError(f"{where}: not whole ({error}); copy the run again") from None

    def intake(self) -> dict[str, Any]:
        """What is known about the data that came in."""
        return read_json(self.path / "intake.json", INTAKE)

    def read_report(self) -> dict[str, Any]:
        """What report.json says; empty when there is none."""
        return read_json(self.report, {"scores": dict[str, dict[str, dict[str, float | None]]]})

    def command(self) -> str:
        """What was typed; nothing where that is not known."""
        path = self.path / "command.txt"
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""


def reporter_of(task: JobTask[Any, Any, Any]) -> Reporter[Any, Any]:
    """What reports on an opened task."""
    return JOBS[task.name].reporter(task)


def is_whole(weights: Path) -> bool:
    """Whether a file of weights is there, and as long as its head says."""
    if not weights.is_file():
        return False
    try:
        with safe_open(weights, framework="numpy"):
            return True
    except (OSError, SafetensorError):
        return False


def read_json(path: Path, kinds: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """One of a run's own JSON files; empty when it is not there.

    Args:
        kinds: What must be of which type, where it is there.
    """
    if not path.exists():
        return {}
    try:
        values = files.read_json(path)
    except (OSError, ValueError) as error:
        raise GlassformerError(f"{path}: not whole ({error}); copy the run again") from None
    try:
        values = fitting(dict[str, Any], values, "it")
        for name in kinds.keys() & values.keys():
            fitting(kinds[name], values[name], name)
    except GlassformerError as error:
        raise strange(path, error) from None
    return values


def read_record(path: Path, kind: type[Record]) -> Record | None:
    """A record that a run keeps as JSON; None when it is not there."""
    values = read_json(path)
    try:
        return build(kind, values) if values else None
    except GlassformerError as error:
        raise strange(path, error) from None


def strange(path: Path, error: GlassformerError) -> GlassformerError:
    """The words for a file of which a run has written no such thing."""
    return GlassformerError(f"{path}: not what a run writes ({error}); copy the run again")
