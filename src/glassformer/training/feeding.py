"""Batches on their way to the model, prepared ahead by threads."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from glassformer.data.batches import Rows, ahead, epoch_batches, ordered_batches
from glassformer.errors import GlassformerError
from glassformer.tasks.base import SomeBatch, Task
from glassformer.training.plan import Plan


@dataclass(frozen=True, slots=True)
class Place:
    """Which rows make a batch, and where the batch after it is."""

    epoch: int
    rows: Rows
    next_epoch: int
    next_batch: int


def training_batches(
    task: Task, plan: Plan, epoch: int, batch: int
) -> Iterator[tuple[Place, SomeBatch]]:
    """Batches of the training part without end, from this one on."""

    def make(place: Place) -> tuple[Place, SomeBatch]:
        content = task.batch("train", place.rows, place.epoch)
        return place, content.to(plan.machine.device)

    return ahead(make, places(task, plan, epoch, batch), plan.data.workers)


def part_batches(task: Task, plan: Plan, part: str) -> Generator[SomeBatch, None, None]:
    """Every row of a part once, without anything random."""
    chosen = ordered_batches(task.lengths(part), plan.data.batch_tokens, padded=task.padded)
    device = plan.machine.device
    return ahead(lambda rows: task.batch(part, rows, None).to(device), chosen, plan.data.workers)


def places(task: Task, plan: Plan, epoch: int, batch: int) -> Iterator[Place]:
    """The way through the epochs, from this batch on."""
    while True:
        rows = one_epoch(task, plan, epoch)
        if not rows:
            raise GlassformerError("the training part has no rows; give it some")
        for at in range(batch, len(rows)):
            ends = at + 1 == len(rows)
            yield Place(epoch, rows[at], epoch + ends, 0 if ends else at + 1)
        epoch, batch = epoch + 1, 0


def one_epoch(task: Task, plan: Plan, epoch: int) -> list[Rows]:
    """The rows of each batch of an epoch."""
    return epoch_batches(
        task.lengths("train"),
        plan.data.batch_tokens,
        padded=task.padded,
        seed=plan.seed,
        epoch=epoch,
    )
