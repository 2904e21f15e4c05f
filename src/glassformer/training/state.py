"""All that changes while a model learns, and checkpoints of it.

    checkpoints/step-120/   model, optimiser, average (all .safetensors), state.json
    checkpoints/latest      the name of the newest whole one

A checkpoint is written under a temporary name, synced and renamed, and only then does `latest` name
it: a process killed at any moment leaves the last good state. Dice need no memory, since everything
random follows from the seed and the step.
"""

import json
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from torch import nn

from glassformer.config import TrainConfig
from glassformer.errors import GlassformerError
from glassformer.files import sync, write_json, write_text
from glassformer.training.averages import MovingAverage
from glassformer.training.optimisers import Optimisers
from glassformer.training.weights import (
    Weights,
    put_weights,
    read_tensors,
    weights_of,
    write_tensors,
)


@dataclass
class Progress:
    """Where training stands, in plain numbers.

    Attributes:
        step: Steps done.
        epoch, batch: Where the next batch is.
        best: The best validations so far, best first: (score, step).
        stale: Validations since the best one.
        stopped: Whether patience ran out.
        seconds: Time spent learning, over all resumptions.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best: list[tuple[float, int]] = field(default_factory=list)
    stale: int = 0
    stopped: bool = False
    seconds: float = 0.0


class State:
    """A model that learns: its weights, what the optimisers remember, averages, and progress."""

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        freeze(model, config.freeze)
        self.model, self.progress = model, Progress()
        self.optimisers = Optimisers(model, config.optimiser)
        self.average = MovingAverage(config.ema, weights_of(model)) if config.ema else None

    @property
    def useful(self) -> Weights | None:
        """Weights better than the model's own, where there are such."""
        return None if self.average is None else self.average.weights

    def save(self, folder: Path) -> None:
        """A checkpoint; then forget those that are neither the newest nor among the best."""
        folder.mkdir(exist_ok=True)
        name = f"step-{self.progress.step}"
        temporary = folder / f".{name}.new"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        write_tensors(weights_of(self.model), temporary / "model.safetensors")
        write_tensors(self.optimisers.tensors(), temporary / "optimiser.safetensors")
        if self.average is not None:
            write_tensors(self.average.weights, temporary / "average.safetensors")
        write_json(asdict(self.progress), temporary / "state.json")
        sync(temporary)
        shutil.rmtree(folder / name, ignore_errors=True)
        temporary.rename(folder / name)
        sync(folder)
        write_text(name + "\n", folder / "latest")
        self._tidy(folder)

    def load(self, folder: Path) -> bool:
        """Go on from the newest checkpoint; False when there is none yet."""
        latest = folder / "latest"
        if not latest.exists():
            shutil.rmtree(folder, ignore_errors=True)
            return False
        name = latest.read_text(encoding="utf-8", errors="replace").strip()
        if not re.fullmatch(r"step-\d+", name):
            raise GlassformerError(
                f"{latest}: names no checkpoint ({name[:40]!r}); write the name of one into it, "
                f"such as step-100, or remove {folder} to train from the start"
            )
        home = folder / name
        progress = read_progress(home / "state.json")
        put_weights(self.model, read_tensors(home / "model.safetensors"), str(home))
        self.optimisers.put(read_tensors(home / "optimiser.safetensors"))
        if self.average is not None:
            self.average.put(read_tensors(home / "average.safetensors"))
        self.progress = progress
        self._tidy(folder)
        return True

    def _tidy(self, folder: Path) -> None:
        """Forget checkpoints that are neither the newest nor among the best, and half ones."""
        steps = [self.progress.step, *(step for _, step in self.progress.best)]
        wanted = {f"step-{step}" for step in steps}
        for path in (*folder.glob("step-*"), *folder.glob(".step-*.new")):
            if path.name not in wanted:
                shutil.rmtree(path)


def read_progress(path: Path) -> Progress:
    """Where training stood at a checkpoint."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        best = [(score, step) for score, step in values.pop("best")]
        return Progress(**values, best=best)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise GlassformerError(
            f"{path}: not the state of a checkpoint ({error}); remove {path.parent.parent} to "
            f"train from the start"
        ) from None


def checkpoint_weights(folder: Path, step: int) -> Weights:
    """The weights a checkpoint would be used with: its average's, where it has one."""
    home = folder / f"step-{step}"
    averaged = home / "average.safetensors"
    return read_tensors(averaged if averaged.exists() else home / "model.safetensors")


def freeze(model: nn.Module, starts: tuple[str, ...]) -> None:
    """Let the parameters whose names begin so learn nothing."""
    named = list(model.named_parameters(remove_duplicate=False))  # shared ones by all their names
    for start in starts:
        found = [p for name, p in named if (name + ".").startswith(start + ".")]
        if not found:
            parts = sorted({name.split(".")[0] for name, _ in named})
            raise GlassformerError(
                f"train.freeze: no parameter begins with {start!r}; the parts are "
                f"{', '.join(parts)}"
            )
        for parameter in found:
            parameter.requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        raise GlassformerError(
            "train.freeze leaves nothing to learn; freeze fewer parts, such as train.freeze=encoder"
        )
