"""What a job is, and all that training knows of it.

A Task holds samples in parts (train, valid, test), makes batches of them, and says how wrong and
how good a model is. R-Drop needs two `forward`s and a `divergence`, virtual adversarial training
needs `noise`: both live in `training`, once for every job.

A Job (see `tasks.job`) is a Task that begins with raw data and ends with answers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.models.transformer import Noise


@dataclass(frozen=True, slots=True)
class Loss:
    """A sum over `count` things: gradients are divided once, by the count of all batches of a step.

    So neither accumulation nor the number of processes changes the result.

    Attributes:
        measured: The loss as validation measures it, without label smoothing or weights, which is
            logged; None if that is this one.
    """

    total: Float[Tensor, ""]
    count: Float[Tensor, ""]
    measured: "Loss | None" = None

    @property
    def logged(self) -> "Loss":
        """The one to compare with the loss on validation rows."""
        return self if self.measured is None else self.measured

    def map(self, change: Callable[[Tensor], Tensor]) -> "Loss":
        """Apply a function to every number of the loss."""
        measured = None if self.measured is None else self.measured.map(change)
        return Loss(change(self.total), change(self.count), measured)


@runtime_checkable
class SomeBatch(Protocol):
    """What training asks of a batch: to move, and to say how many tokens it has."""

    @property
    def tokens(self) -> int: ...

    def to(self, device: torch.device) -> "SomeBatch": ...


@runtime_checkable
class ShapedBatch(SomeBatch, Protocol):
    """A batch that can be padded to a given shape, so that every step has the same one.

    Its class is registered as a pytree. Padding must not count in `loss`.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that determine its shape; empty if it cannot be padded."""
        ...

    def filled(self, sizes: tuple[int, ...]) -> "ShapedBatch":
        """The same batch, padded to these sizes, none of which is below its own."""
        ...

    def twice(self) -> "ShapedBatch":
        """All rows twice, one copy after the other; outputs come in the same order."""
        ...


Batch = TypeVar("Batch", bound=SomeBatch)
Output = TypeVar("Output")


class Task(ABC, Generic[Batch, Output]):
    """One thing worth learning: its data, its model, its loss, its score.

    Attributes:
        name: The word for it on the command line.
        goal: The score by which the best model is chosen; it may follow from the settings.
        higher_is_better: Whether more of it is better.
        perfect: What it would be without any mistake.
        scoring_work: What scoring a token costs, in tokens to train on: a forward pass is a third.
    """

    name: ClassVar[str]
    goal: str
    higher_is_better: bool = True
    perfect: float = 1.0
    scoring_work: float = 1 / 3

    @abstractmethod
    def model(self) -> nn.Module:
        """Which model fits it? With fresh weights."""

    @abstractmethod
    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        """How many tokens does each row of a split have? From an index built once."""

    @abstractmethod
    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> Batch:
        """What does it learn from? All that is random follows from the epoch and the rows.

        None for the epoch leaves all randomness out, as for evaluation.
        """

    @abstractmethod
    def forward(self, model: nn.Module, batch: Batch, *, noise: Noise | None = None) -> Output:
        """What does the model say? Through `model(...)` only, so that hooks run."""

    @abstractmethod
    def loss(self, output: Output, batch: Batch) -> Loss:
        """How wrong is it?"""

    @abstractmethod
    def divergence(self, a: Output, b: Output, batch: Batch) -> Loss:
        """How much do two answers differ? The sum of D(a || b), over what `loss` counts."""

    @abstractmethod
    def score(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, float]:
        """How good is it on these batches, in the numbers its field uses? `goal` is one of them.

        Other processes may score other batches: `processes.gathered` brings their rows together.
        """

    @property
    def objective_note(self) -> str | None:
        """Why is the loss in training another quantity than the validation loss? None if it is not.

        It is then called the training objective, and drawn by itself.
        """
        return None

    def where(self, split: str, row: int) -> str:
        """Where does a row of a split come from? In words."""
        return f"row {row + 1} of the {split} split"

    @property
    def padded(self) -> bool:
        """Whether padding counts towards the size of a batch."""
        return True

    @property
    def mixes_lengths(self) -> bool:
        """Whether rows of all lengths in one packed batch cost a GPU no more than similar ones."""
        return not self.padded
