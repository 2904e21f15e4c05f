"""The progress of a training: all of its state that is not a tensor."""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from glassformer.errors import GlassformerError
from glassformer.files import read_json

MAX_HALVINGS = 3  # of the learning rate, before training is aborted
COUNTS = ("step", "epoch", "batch", "stale", "halvings", "micro_batches")


@dataclass
class Progress:
    """What a checkpoint stores besides tensors.

    Attributes:
        step: Steps done.
        epoch, batch: The position of the next batch.
        best: The best validations so far, best first: (score, step).
        losses: The validation losses of these, by step as text; they break ties.
        stale: Validations since the best one.
        stopped: Whether patience ran out (early stopping).
        seconds: Time of the steps, over all resumptions.
        wall: Time of the training with its validations and checkpoints, over all resumptions.
        halvings: How often the learning rate was halved because training diverged.
        micro_batches: How many micro-batches each batch is split into to fit in memory.
        since: Sums since the last report, if training was stopped between two reports.
        unvalidated: Whether the validation due after this step has yet to finish.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best: list[tuple[float, int]] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    stale: int = 0
    stopped: bool = False
    seconds: float = 0.0
    wall: float = 0.0
    halvings: int = 0
    micro_batches: int = 1
    since: list[float] = field(default_factory=list)
    unvalidated: bool = False

    @property
    def lr_scale(self) -> float:
        """The factor on the scheduled learning rate."""
        return 0.5**self.halvings

    def as_values(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def read_progress(path: Path) -> tuple[Progress, dict[str, str]]:
    """The progress stored in a checkpoint, and the checksum of each of its files."""
    try:
        values = read_json(path)
        files = {str(name): str(checksum) for name, checksum in values.pop("files", {}).items()}
        best = [(math.nan if s is None else s, step) for s, step in values.pop("best")]
        progress = Progress(**values, best=best)
        _check_values(progress)
        return progress, files
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise GlassformerError(f"{path}: not a valid checkpoint state ({error})") from None


def _check_values(progress: Progress) -> None:
    """Refuse values that no training can produce."""
    for name in COUNTS:
        value = getattr(progress, name)
        if type(value) is not int or value < (name == "micro_batches"):
            raise ValueError(f"{name} cannot be {value!r}")
    for score, step in progress.best:
        if type(step) is not int or not 0 < step <= progress.step or not _is_number(score):
            raise ValueError(f"best cannot contain {[score, step]}")
    for name in ("seconds", "wall"):
        value = getattr(progress, name)
        if not _is_number(value) or not 0 <= value < math.inf:
            raise ValueError(f"{name} cannot be {value!r}")
    if not all(map(_is_number, progress.losses.values())):
        raise ValueError(f"losses cannot be {progress.losses!r}")
    if not all(map(_is_number, progress.since)):
        raise ValueError(f"since cannot be {progress.since!r}")


def _is_number(value: object) -> bool:
    return type(value) in (int, float)
