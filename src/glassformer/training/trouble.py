"""What can go wrong in a step, in words: numbers that are none."""

from glassformer.errors import GlassformerError
from glassformer.tasks.task import Task
from glassformer.training.loader import Place

NAMED = 3  # rows of a batch


class DivergedError(GlassformerError):
    """A loss or a gradient that is no number."""

    def __init__(self, loss: float, norm: float, step: int, place: Place | None) -> None:
        self.loss, self.norm, self.step, self.place = loss, norm, step, place
        super().__init__(self.told([]) + "; lower the learning rate, --set train.optimiser.lr=...")

    def told(self, rows: list[str]) -> str:
        """What happened, and in which rows."""
        batch = ""
        if self.place is not None:
            batch = f" in batch {self.place.batch + 1} of epoch {self.place.epoch + 1}"
        named = f" ({', '.join(rows)})" if rows else ""
        return (
            f"training diverged at step {self.step:,}{batch}{named}: loss {self.loss:.4g}, length "
            f"of the gradient {self.norm:.4g}"
        )

    def with_rows(self, task: Task) -> str:
        """The same, with the first rows of the batch by name."""
        if self.place is None:
            return self.told([])
        rows = self.place.batch_rows
        named = [task.where("train", int(row)) for row in rows[:NAMED]]
        if len(rows) > NAMED:
            named.append(f"and {len(rows) - NAMED:,} more")
        return self.told(named)
