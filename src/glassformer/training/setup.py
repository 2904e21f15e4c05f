"""The resolved settings of a training run, its length, and the events that the loop yields."""

import math
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from glassformer import processes
from glassformer.config import DataConfig, TrainConfig
from glassformer.training.machine import Machine

VALIDATIONS = 10  # in a run, unless train.validate_every is set
FEWEST_STEPS = 300  # unless train.steps is set
CLOSE = 0.02  # of the steps to come: smaller corrections of a length are not worth making
RECENT = 0.2  # of the steps done, from which the pace is measured
REGULAR = 1.5  # times an interval of validations: a smaller change leaves it as it is
SETTLED = 0.75  # of all steps: from here on the learning rate is low, and no steps are added


def validation_interval(steps: int) -> int:
    """Steps between two of the usual number of validations."""
    return max(1, -(-steps // VALIDATIONS))


class Mark(NamedTuple):
    """A moment of a training: steps done, and seconds spent on steps alone."""

    step: int
    seconds: float


class TimedLength:
    """The number of steps of a training that ends by the clock.

    It starts from a guess and is revised at every report, by the pace of the last steps: the
    learning rate, which follows the number of steps, always decays to its end.

    Attributes:
        steps: All steps, as planned by now.
        validate_every: Steps between two validations, if the settings leave that open.

    Args:
        until: When to end, by `time.monotonic`.
        pause: Seconds of a validation and a checkpoint, until they are measured.
    """

    def __init__(self, steps: int, until: float, pause: float = 0.0) -> None:
        self.steps, self.until, self.pause = steps, until, pause
        self.paused = 0.0
        self.validate_every = validation_interval(steps)
        self.marks: deque[Mark] = deque()

    def add_pause(self, seconds: float) -> None:
        """Count a validation with its checkpoint, which takes no steps."""
        self.paused += seconds
        self.pause = seconds

    def revise(self, step: int, pauses: int) -> None:
        """Fit the number of steps to the time left after this step; all processes agree.

        Args:
            pauses: Validations to come.
        """
        now = time.monotonic()
        if self.marks and step <= self.marks[-1].step:  # training went back
            self.marks.clear()
        self.marks.append(Mark(step, now - self.paused))
        first = self.marks[0]
        while len(self.marks) > 2 and self.marks[1].step <= step * (1 - RECENT):
            self.marks.popleft()
            first = self.marks[0]
        if first.step == step:
            return
        pace = (self.marks[-1].seconds - first.seconds) / (step - first.step)
        left = self.until - now - self.pause * max(1, pauses)
        fitting = step + max(1, math.floor(left / max(pace, 1e-9)))
        if abs(fitting - self.steps) <= CLOSE * (self.steps - step):
            fitting = self.steps
        if fitting > self.steps and step > SETTLED * self.steps:
            fitting = self.steps
        self.steps = max(step + 1, int(processes.broadcast(str(fitting))))
        interval = validation_interval(self.steps)
        if not 1 / REGULAR <= interval / self.validate_every <= REGULAR:
            self.validate_every = interval


@dataclass(frozen=True, slots=True)
class TrainSetup:
    """The settings of a training run, with every default resolved.

    Args:
        checkpoints: The folder for checkpoints; None saves none.
        length: Ends training by the clock; None for the steps of the settings.
    """

    train: TrainConfig
    data: DataConfig
    machine: Machine
    seed: int
    checkpoints: Path | None = None
    length: TimedLength | None = None

    @property
    def steps(self) -> int:
        """Total number of steps."""
        if self.length is not None:
            return self.length.steps
        if self.train.steps is None:
            raise ValueError("train.steps is not set; set it before training")
        return self.train.steps

    @property
    def kept_checkpoints(self) -> int:
        """How many of the best checkpoints are kept."""
        return max(self.train.keep, self.train.average)

    @property
    def validate_every(self) -> int:
        """Steps between two validations."""
        if self.train.validate_every is not None:
            return self.train.validate_every
        return self.length.validate_every if self.length else validation_interval(self.steps)

    def validates(self, step: int) -> bool:
        """Whether the model is validated after this step."""
        return step % self.validate_every == 0 or step == self.steps

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
