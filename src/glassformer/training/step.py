"""One batch of a step: forward and backward, whose gradients add up in the model."""

from torch import nn

from glassformer.tasks.task import Loss, SomeBatch, Task
from glassformer.training.ddp import spread
from glassformer.training.loader import Piece, Shape
from glassformer.training.objective import Losses, Reseed, objective, reseeding
from glassformer.training.setup import TrainSetup


class EagerStep:
    """Forward and backward of a batch, kernel by kernel; gradients add up in the model.

    Attributes:
        shape: What batches are filled up to; None where each keeps its own.
    """

    shape: Shape | None = None

    def __init__(self, model: nn.Module, task: Task, setup: TrainSetup) -> None:
        self.model, self.setup = spread(model, setup.machine), setup
        self.losses: Losses = task

    def __call__(self, piece: Piece, seed: int) -> Loss:
        """The loss of a piece of a batch, whose gradients are added; an idle one adds none."""
        return self.run(piece.batch, reseeding(seed), idle=piece.place.idle)

    def run(self, batch: SomeBatch, reseed: Reseed, *, idle: bool = False) -> Loss:
        """Forward and backward."""
        with self.setup.machine.autocast():
            regularise = self.setup.train.regularise
            total, loss = objective(self.model, self.losses, batch, regularise, reseed)
        (total * 0 if idle else total).backward()
        return Loss(loss.total.detach(), loss.count)
