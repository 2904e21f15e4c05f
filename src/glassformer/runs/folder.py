"""A run folder and its files.

config.toml          the request, with all settings resolved
command.txt          the same, as typed on a command line
intake.json          columns, rows by split, and skipped rows
tokenizer.json       and whatever else the job learned before training
data/                samples and their index
initial.safetensors  initial weights, if some came from another run
checkpoints/         to resume from
metrics.jsonl        training events, one JSON line each
refit.jsonl          those of a second training on all labelled rows
board/               the same for TensorBoard
model.safetensors    the trained model; empty where n-grams alone answer
report.json, .html   scores beside a baseline
faithfulness.json    how far explanations can be trusted, once it was measured
checksums.json       to detect changed files
pretrain/            the pretraining run, if there was one
refit/               the training on all labelled rows, while it runs
unlabelled/          what it reads, if there are rows without labels
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import nn

from glassformer import files
from glassformer.config.run import Config, config_of, read_config_values
from glassformer.config.values import Record, build, fitting
from glassformer.data.splitter import Skipped
from glassformer.errors import GlassformerError, usable_paths
from glassformer.files import write_text
from glassformer.tasks import JOBS
from glassformer.tasks.job import AnyTask
from glassformer.tasks.reporter import Reporter

INTAKE = {  # what intake.json holds
    "columns": dict[str, str],
    "counts": dict[str, int],
    "skipped": dict[str, Skipped],
    "shared": dict[str, Skipped],
    "together": dict[str, str],
    "related": dict[str, dict[str, Skipped]],
    "lost": dict[str, Skipped],
    "back_translated": tuple[str, ...],
}


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of a run.

    Attributes:
        samples: Where its data are, if elsewhere.
        own_model: Builds a person's own model instead of the job's.
    """

    path: Path
    samples: Path | None = None
    own_model: Callable[[AnyTask], nn.Module] | None = None

    @property
    def config_file(self) -> Path:
        return self.path / "config.toml"

    @property
    def data(self) -> Path:
        return self.samples or self.path / "data"

    @property
    def unlabelled(self) -> Path:
        return self.path / "unlabelled"

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
    def second_metrics(self) -> Path:
        return self.path / "refit.jsonl"

    @property
    def model(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def report(self) -> Path:
        return self.path / "report.json"

    @property
    def is_finished(self) -> bool:
        """Whether there is a report, and a readable model."""
        return self.report.exists() and is_readable(self.model)

    @property
    def keeps_network(self) -> bool:
        """Whether the trained model has weights; it has none where n-grams alone answer."""
        try:
            with safe_open(self.model, framework="numpy") as file:
                return bool(list(file.keys()))
        except (OSError, SafetensorError):
            return True

    def config(self) -> Config:
        """The configuration."""
        if not self.config_file.exists():
            if not self.path.exists():
                raise GlassformerError(f"{self.path}: not found; check the path")
            raise GlassformerError(
                f"{self.path}: not a run folder, it has no config.toml; name one "
                f"created by `glassformer train`"
            )
        self.refuse_special_files()
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
        """Refuse anything but files and folders: reading a pipe would block forever."""
        for path in self.path.rglob("*"):
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise GlassformerError(
                    f"{path}: neither a file nor a folder; remove it, or copy the run again"
                )

    @property
    def pretrain(self) -> "RunFolder":
        """The pretraining run, over the same data, and rows without labels if there are any."""
        data = self.unlabelled if self.unlabelled.exists() else self.data
        return RunFolder(self.path / "pretrain", data)

    def write_config(self, config: Config) -> None:
        """Replace config.toml."""
        write_text(config.to_toml(), self.config_file)

    def open_task(self, config: Config, data: Path | None) -> AnyTask:
        """The task of the run, over these data."""
        try:
            with usable_paths():
                task = JOBS[config.job].task(config, self.path, data)
        except (OSError, ValueError) as error:
            where = self.path if data is None else data
            raise GlassformerError(
                f"{where}: incomplete or damaged ({error}); copy the run again"
            ) from None
        task.own_model = self.own_model
        return task

    def intake(self) -> dict[str, Any]:
        """The report on reading the data."""
        return read_json(self.path / "intake.json", INTAKE)

    def read_report(self) -> dict[str, Any]:
        """The contents of report.json; empty if there is none."""
        found = read_json(self.report, {"scores": dict[str, dict[str, dict[str, Any]]]})
        for system, scores in found.get("scores", {}).items():
            for name, ends in scores.items():
                numbers = {end: value for end, value in ends.items() if end != "reason"}
                where = f"scores.{system}.{name}"
                try:
                    fitting(dict[str, float | None], numbers, where)
                    fitting(str, ends.get("reason", ""), f"{where}.reason")
                except GlassformerError as error:
                    raise malformed(self.report, error) from None
        return found

    def command(self) -> str:
        """The command that created the run; empty if unknown."""
        path = self.path / "command.txt"
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""


def reporter_of(task: AnyTask) -> Reporter[Any, Any]:
    """The reporter of an opened task."""
    return JOBS[task.name].reporter(task)


def is_readable(weights: Path) -> bool:
    """Whether a weights file exists and matches its header."""
    if not weights.is_file():
        return False
    try:
        with safe_open(weights, framework="numpy"):
            return True
    except (OSError, SafetensorError):
        return False


def read_json(path: Path, kinds: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Read a JSON file of a run; empty if it does not exist.

    Args:
        kinds: Expected types by key; keys may be missing.
    """
    if not path.exists():
        return {}
    try:
        with usable_paths():
            values = files.read_json(path)
    except (OSError, ValueError) as error:
        raise GlassformerError(
            f"{path}: incomplete or damaged ({error}); copy the run again"
        ) from None
    try:
        values = fitting(dict[str, Any], values, "it")
        for name in kinds.keys() & values.keys():
            fitting(kinds[name], values[name], name)
    except GlassformerError as error:
        raise malformed(path, error) from None
    return values


def read_record(path: Path, kind: type[Record]) -> Record | None:
    """Read a record that a run stores as JSON; None if it does not exist."""
    values = read_json(path)
    try:
        return build(kind, values) if values else None
    except GlassformerError as error:
        raise malformed(path, error) from None


def malformed(path: Path, error: GlassformerError) -> GlassformerError:
    """The error for a file that a run cannot have written."""
    return GlassformerError(f"{path}: not what a run writes ({error}); copy the run again")
