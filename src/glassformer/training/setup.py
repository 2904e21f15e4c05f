"""What the loop needs to know before it starts, all numbers settled, and what it tells."""

from dataclasses import dataclass
from pathlib import Path

from glassformer.config import DataConfig, TrainConfig
from glassformer.training.machine import Machine

VALIDATIONS = 10  # in a run, unless the settings say how often
FEWEST_STEPS = 300  # when nobody says how many


@dataclass(frozen=True, slots=True)
class TrainSetup:
    """How a model will be taught.

    Args:
        checkpoints: Where they go; None keeps none.
    """

    train: TrainConfig
    data: DataConfig
    machine: Machine
    seed: int
    checkpoints: Path | None = None

    @property
    def steps(self) -> int:
        """How many steps there are in all."""
        if self.train.steps is None:
            raise ValueError("the setup has no number of steps; settle it before training")
        return self.train.steps

    @property
    def keeps(self) -> int:
        """How many of the best checkpoints stay."""
        return max(self.train.keep, self.train.average)

    def validates(self, step: int) -> bool:
        """Whether the model is to be tried on the validation part after this step."""
        every = self.train.validate_every or max(1, -(-self.steps // VALIDATIONS))
        return step % every == 0 or step == self.steps

    def saves(self, step: int) -> bool:
        """Whether a checkpoint is due after this step."""
        every = self.train.save_every
        return self.validates(step) or (every is not None and step % every == 0)

    def reports(self, step: int) -> bool:
        """Whether numbers are read after this step; always before a checkpoint."""
        return step % self.train.log_every == 0 or self.saves(step)


@dataclass(frozen=True, slots=True)
class Step:
    """What happened since the last report.

    Attributes:
        norm: The largest norm of a gradient.
        data_wait: Share of the time in which the next batch was not ready.
        gpu_busy: Share of the time in which a GPU had a step to make; None on other devices.
    """

    step: int
    loss: float
    lr: float
    norm: float
    tokens_per_second: float
    data_wait: float = 0.0
    gpu_busy: float | None = None


@dataclass(frozen=True, slots=True)
class Validation:
    """How good the model is now, and whether it was never better."""

    step: int
    scores: dict[str, float]
    best: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something went wrong, and what was done about it."""

    step: int
    what: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth knowing about the steps from here on."""

    step: int
    text: str


Event = Step | Validation | Trouble | Note
