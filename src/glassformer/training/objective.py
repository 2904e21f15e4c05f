"""What a step makes smaller: the job's loss, and what holds the model back from learning by heart.

    R-Drop    two passes with different dropout should agree               Liang et al., 2021
                  loss = (loss₁ + loss₂) / 2 + weight · (D(1 ‖ 2) + D(2 ‖ 1)) / 2
    VAT       the worst small change of the input should change little     Miyato et al., 2016
                  loss = loss + weight · D(clean ‖ changed)

Both need of a job only its `forward` and its `divergence`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from glassformer.config import RegulariserConfig, VirtualAdversaryConfig
from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors
from glassformer.models.transformer import Noise
from glassformer.tasks.task import Loss, ShapedBatch, SomeBatch

Reseed = Callable[[int], None]  # with an offset: each is a sequence of random numbers of its own


@runtime_checkable
class Losses(Protocol):
    """What an objective needs of a task."""

    def forward(self, model: nn.Module, batch: Any, *, noise: Noise | None = None) -> Any: ...

    def loss(self, output: Any, batch: Any) -> Loss: ...

    def divergence(self, a: Any, b: Any, batch: Any) -> Loss: ...


def objective(
    model: nn.Module, task: Losses, batch: SomeBatch, config: RegulariserConfig, reseed: Reseed
) -> tuple[Tensor, Loss]:
    """What to take the gradient of, a sum over the batch, and the job's own loss in it."""
    reseed(0)
    if config.vat.weight:
        return adversarial(model, task, batch, config, reseed)
    if config.r_drop and isinstance(batch, ShapedBatch):
        return doubled(model, task, batch, config.r_drop)
    output = task.forward(model, batch)
    loss = task.loss(output, batch)
    return with_second_pass(model, task, batch, output, loss, config.r_drop), loss


def doubled(
    model: nn.Module, task: Losses, batch: ShapedBatch, weight: float
) -> tuple[Tensor, Loss]:
    """R-Drop with both passes as one, over a batch that holds every row twice."""
    both = batch.twice()
    output = task.forward(model, both)
    loss = task.loss(output, both)
    one, other = (tree_map_only(Tensor, partial(half, n), output) for n in (0, 1))
    apart = disagreement(task, one, other, batch)
    return loss.total / 2 + weight * apart, Loss(loss.total / 2, loss.count / 2)


def half(number: int, x: Tensor) -> Tensor:
    """The first or the second half of a tensor's rows."""
    return x.chunk(2)[number]


def with_second_pass(
    model: nn.Module, task: Losses, batch: SomeBatch, output: Any, loss: Loss, weight: float
) -> Tensor:
    """R-Drop with a second pass after the first; without a weight, the loss as it is."""
    if not weight:
        return loss.total
    other = task.forward(model, batch)
    apart = disagreement(task, output, other, batch)
    return (loss.total + task.loss(other, batch).total) / 2 + weight * apart


def disagreement(task: Losses, output: Any, other: Any, batch: SomeBatch) -> Tensor:
    """The mean of both divergences of two answers."""
    there = task.divergence(output, other, batch).total
    return (there + task.divergence(other, output, batch).total) / 2


def adversarial(
    model: nn.Module, task: Losses, batch: SomeBatch, config: RegulariserConfig, reseed: Reseed
) -> tuple[Tensor, Loss]:
    """The objective with virtual adversarial training."""
    seen = Seen()
    output = task.forward(model, batch, noise=seen)
    loss = task.loss(output, batch)
    total = with_second_pass(model, task, batch, output, loss, config.r_drop)
    apart = adversary(model, task, batch, output, seen, config.vat, reseed)
    return total + config.vat.weight * apart, loss


def adversary(
    model: nn.Module,
    task: Losses,
    batch: SomeBatch,
    output: Any,
    seen: "Seen",
    config: VirtualAdversaryConfig,
    reseed: Reseed,
) -> Tensor:
    """How much the answer changes under the worst small change of the input, as a sum.

    Each row moves by a share of its own norm, taken over all its vectors. All passes use the same
    dropout as the clean one, so that they differ by the change alone.

    Args:
        output: The clean answer.
        seen: What the frontend gave for it.
    """
    clean = detached(output)
    reseed(1)
    direction = unit(torch.randn_like(seen.vectors), seen.layout).requires_grad_()
    reseed(0)
    changed = task.forward(model, batch, noise=Push(config.probe, direction))
    apart = task.divergence(clean, changed, batch).total
    (worst,) = torch.autograd.grad(apart, direction)
    reseed(0)
    push = Push(config.distance, unit(worst, seen.layout))
    return task.divergence(clean, task.forward(model, batch, noise=push), batch).total


class Seen:
    """Noise at a frontend's output that changes nothing and remembers what it saw."""

    vectors: Vectors
    layout: Layout

    def __call__(self, x: Vectors, layout: Layout) -> Vectors:
        self.vectors, self.layout = x.detach(), layout
        return x


class Push:
    """Noise at a frontend's output: a step of a given length in a direction of length 1."""

    def __init__(self, length: float, direction: Vectors) -> None:
        self.length, self.direction = length, direction

    def __call__(self, x: Vectors, layout: Layout) -> Vectors:
        return x + self.length * row_lengths(x.detach(), layout) * self.direction


def reseeding(seed: int) -> Reseed:
    """Where random numbers begin again, on every device."""

    def reseed(offset: int) -> None:
        torch.manual_seed(seed + offset)

    return reseed


def detached(output: Any) -> Any:
    """The same answer, with nothing to learn from it."""
    if not any(isinstance(leaf, Tensor) for leaf in tree_leaves(output)):
        raise TypeError(
            f"a job's output must be a tensor, or tensors in a tuple, list or dict; got "
            f"{type(output).__name__}"
        )
    return tree_map_only(Tensor, Tensor.detach, output)


def unit(direction: Vectors, layout: Layout) -> Vectors:
    """The same directions, each row of length 1."""
    return direction / row_lengths(direction, layout).clamp(min=1e-12)


def row_lengths(x: Vectors, layout: Layout) -> Tensor:
    """The length of each row's vectors taken as one, beside each of its tokens."""
    squares = x.float().square().sum(-1)  # (B, T) or (N,)
    squares = squares.masked_fill(~layout.real, 0.0)
    if layout.row_of is None:
        return squares.sum(1).sqrt()[:, None, None].to(x.dtype)  # (B, 1, 1)
    rows = squares.new_zeros(layout.rows).index_add(0, layout.row_of, squares)
    return rows.sqrt()[layout.row_of, None].to(x.dtype)  # (N, 1)
