"""The resolved settings of a training run, and the events that the loop yields."""

from dataclasses import dataclass
from pathlib import Path

from glassformer.config import DataConfig, TrainConfig
from glassformer.training.machine import Machine

VALIDATIONS = 10  # in a run, unless train.validate_every is set
FEWEST_STEPS = 300  # unless train.steps is set


@dataclass(frozen=True, slots=True)
class TrainSetup:
    """The settings of a training run, with every default resolved.

    Args:
        checkpoints: The folder for checkpoints; None saves none.
    """

    train: TrainConfig
    data: DataConfig
    machine: Machine
    seed: int
    checkpoints: Path | None = None

    @property
    def steps(self) -> int:
        """Total number of steps."""
        if self.train.steps is None:
            raise ValueError("train.steps is not set; set it before training")
        return self.train.steps

    @property
    def kept_checkpoints(self) -> int:
        """How many of the best checkpoints are kept."""
        return max(self.train.keep, self.train.average)

    def validates(self, step: int) -> bool:
        """Whether the model is validated after this step."""
        every = self.train.validate_every or max(1, -(-self.steps // VALIDATIONS))
        return step % every == 0 or step == self.steps

    def saves(self, step: int) -> bool:
        """Whether a checkpoint is saved after this step."""
        every = self.train.save_every
        return self.validates(step) or (every is not None and step % every == 0)

    def reports(self, step: int) -> bool:
        """Whether the loss is reported after this step; always before a checkpoint."""
        return step % self.train.log_every == 0 or self.saves(step)


@dataclass(frozen=True, slots=True)
class Step:
    """The training metrics since the last report.

    Attributes:
        norm: The largest gradient norm.
        data_wait: Fraction of the time in which the device had to wait for the next batch.
        gpu_busy: Fraction of the time in which a GPU was running a step; None on other devices.
        loss_name: What `loss` is: "loss", as on validation rows, or an "objective" with more in it.
    """

    step: int
    loss: float
    lr: float
    norm: float
    tokens_per_second: float
    data_wait: float = 0.0
    gpu_busy: float | None = None
    loss_name: str = "loss"


@dataclass(frozen=True, slots=True)
class Validation:
    """The validation scores, and whether they are the best so far."""

    step: int
    scores: dict[str, float]
    best: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem, and what was done about it."""

    step: int
    what: str


@dataclass(frozen=True, slots=True)
class Note:
    """Information about how the steps are run from here on."""

    step: int
    text: str


Event = Step | Validation | Trouble | Note
