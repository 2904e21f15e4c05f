"""Forward and backward of one batch. Gradients accumulate in the model."""

from torch import Tensor, nn

from glassformer.tasks.task import Loss, SomeBatch, Task
from glassformer.training.ddp import wrap_ddp
from glassformer.training.loader import Shape, TrainingBatch
from glassformer.training.objective import Reseed, objective, reseeding
from glassformer.training.setup import TrainSetup


class EagerStep:
    """Forward and backward in eager mode, kernel by kernel.

    Attributes:
        shape: The shape that batches are padded to; None if each keeps its own.
    """

    shape: Shape | None = None

    def __init__(self, model: nn.Module, task: Task, setup: TrainSetup) -> None:
        self.model, self.task, self.setup = wrap_ddp(model, setup.machine), task, setup

    def __call__(self, batch: TrainingBatch, seed: int) -> Loss:
        """The loss of a batch, after accumulating its gradients; an idle batch adds zeros."""
        return self.run(batch.batch, reseeding(seed), idle=batch.source.idle)

    def run(self, batch: SomeBatch, reseed: Reseed, *, idle: bool = False) -> Loss:
        """Forward and backward."""
        with self.setup.machine.autocast():
            regularise = self.setup.train.regularise
            total, loss = objective(self.model, self.task, batch, regularise, reseed)
        (total * 0 if idle else total).backward()
        return loss.map(Tensor.detach)
