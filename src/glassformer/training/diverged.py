"""The error of a training that diverged, with the rows of the batch where it happened."""

from glassformer.errors import GlassformerError
from glassformer.tasks.task import Task
from glassformer.training.loader import BatchSource

NAMED = 3  # rows of a batch


class DivergedError(GlassformerError):
    """The loss or a gradient is NaN or infinite."""

    def __init__(self, loss: float, norm: float, step: int, source: BatchSource | None) -> None:
        self.loss, self.norm, self.step, self.source = loss, norm, step, source
        super().__init__(
            self.describe([]) + "; lower the learning rate with --set train.optimiser.lr=..."
        )

    def describe(self, rows: list[str]) -> str:
        """What happened, and in which rows."""
        batch = ""
        if self.source is not None:
            batch = f" in batch {self.source.batch + 1} of epoch {self.source.epoch + 1}"
        named = f" ({', '.join(rows)})" if rows else ""
        return (
            f"training diverged at step {self.step:,}{batch}{named}: loss {self.loss:.4g}, "
            f"gradient norm {self.norm:.4g}"
        )

    def with_rows(self, task: Task) -> str:
        """The description, with the first rows of the batch by name."""
        if self.source is None:
            return self.describe([])
        rows = self.source.batch_rows
        named = [task.where("train", int(row)) for row in rows[:NAMED]]
        if len(rows) > NAMED:
            named.append(f"and {len(rows) - NAMED:,} more")
        return self.describe(named)
