"""The training objective: the job's loss, and regularisers against overfitting.

    R-Drop    two passes with different dropout should agree               Liang et al., 2021
                  loss = (loss₁ + loss₂) / 2 + weight · (D(1 ‖ 2) + D(2 ‖ 1)) / 2
    VAT       the worst small perturbation should change little            Miyato et al., 2016
                  loss = loss + weight · D(clean ‖ perturbed)

Both need only the `forward`, `loss` and `divergence` of a job.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

from glassformer.config import RegulariserConfig, VirtualAdversaryConfig
from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors
from glassformer.tasks.task import Loss, ShapedBatch, SomeBatch, Task

Reseed = Callable[[int], None]  # restarts the random numbers, with a separate stream per offset


def objective(
    model: nn.Module, task: Task, batch: SomeBatch, config: RegulariserConfig, reseed: Reseed
) -> tuple[Tensor, Loss]:
    """The objective to differentiate, summed over the batch, and the job's own loss in it."""
    reseed(0)
    if config.vat.weight:
        return adversarial(model, task, batch, config, reseed)
    if config.r_drop and isinstance(batch, ShapedBatch):
        return doubled_r_drop(model, task, batch, config.r_drop)
    output = task.forward(model, batch)
    loss = task.loss(output, batch)
    return with_second_pass(model, task, batch, output, loss, config.r_drop), loss


def doubled_r_drop(
    model: nn.Module, task: Task, batch: ShapedBatch, weight: float
) -> tuple[Tensor, Loss]:
    """R-Drop in a single pass, over a batch that holds every row twice."""
    doubled = batch.twice()
    output = task.forward(model, doubled)
    loss = task.loss(output, doubled)
    divergence = symmetric_divergence(task, *halves(output), batch)
    return loss.total / 2 + weight * divergence, loss.map(lambda sum_: sum_ / 2)


def halves(output: Any) -> tuple[Any, Any]:
    """An output whose tensors have the first half of the rows, and one with the second."""
    leaves, structure = tree_flatten(output)
    pairs = [x.chunk(2) if isinstance(x, Tensor) else (x, x) for x in leaves]
    first, second = (tree_unflatten([pair[n] for pair in pairs], structure) for n in (0, 1))
    return first, second


def with_second_pass(
    model: nn.Module, task: Task, batch: SomeBatch, output: Any, loss: Loss, weight: float
) -> Tensor:
    """R-Drop with a second pass; with weight 0, the plain loss."""
    if not weight:
        return loss.total
    other = task.forward(model, batch)
    divergence = symmetric_divergence(task, output, other, batch)
    return (loss.total + task.loss(other, batch).total) / 2 + weight * divergence


def symmetric_divergence(task: Task, output: Any, other: Any, batch: SomeBatch) -> Tensor:
    """The mean of the divergences of two outputs in both directions."""
    forward = task.divergence(output, other, batch).total
    return (forward + task.divergence(other, output, batch).total) / 2


def adversarial(
    model: nn.Module, task: Task, batch: SomeBatch, config: RegulariserConfig, reseed: Reseed
) -> tuple[Tensor, Loss]:
    """The objective with virtual adversarial training."""
    recorder = InputRecorder()
    output = task.forward(model, batch, noise=recorder)
    loss = task.loss(output, batch)
    total = with_second_pass(model, task, batch, output, loss, config.r_drop)
    divergence = adversarial_divergence(model, task, batch, output, recorder, config.vat, reseed)
    return total + config.vat.weight * divergence, loss


def adversarial_divergence(
    model: nn.Module,
    task: Task,
    batch: SomeBatch,
    output: Any,
    inputs: "InputRecorder",
    config: VirtualAdversaryConfig,
    reseed: Reseed,
) -> Tensor:
    """The divergence under the worst small perturbation of the input, summed over the batch.

    Each row is perturbed by a fraction of its own norm over all its vectors. All passes use the
    same dropout as the clean one, so that they differ by the perturbation alone.

    Args:
        output: The clean output.
        inputs: The output of the frontend in the clean pass.
    """
    clean = detached(output)
    reseed(1)
    direction = normalised(torch.randn_like(inputs.vectors), inputs.layout).requires_grad_()
    reseed(0)
    probed = task.forward(model, batch, noise=Perturbation(config.probe, direction))
    divergence = task.divergence(clean, probed, batch).total
    (worst,) = torch.autograd.grad(divergence, direction)
    reseed(0)
    noise = Perturbation(config.distance, normalised(worst, inputs.layout))
    return task.divergence(clean, task.forward(model, batch, noise=noise), batch).total


class InputRecorder:
    """Noise at a frontend's output that changes nothing and records what it is called with."""

    vectors: Vectors
    layout: Layout

    def __call__(self, x: Vectors, layout: Layout) -> Vectors:
        self.vectors, self.layout = x.detach(), layout
        return x


class Perturbation:
    """Noise at a frontend's output: each row moves along a unit vector, scaled by its norm."""

    def __init__(self, distance: float, direction: Vectors) -> None:
        self.distance, self.direction = distance, direction

    def __call__(self, x: Vectors, layout: Layout) -> Vectors:
        return x + self.distance * row_norms(x.detach(), layout) * self.direction


def reseeding(seed: int) -> Reseed:
    """A function that restarts the random numbers of every device at this seed, plus an offset."""

    def reseed(offset: int) -> None:
        if torch.cuda.is_initialized() or torch.backends.mps.is_available():
            torch.manual_seed(seed + offset)
        else:  # which prepares messages for devices that are not there, for half a millisecond
            torch.default_generator.manual_seed(seed + offset)

    return reseed


def detached(output: Any) -> Any:
    """The same output without gradients."""
    if not any(isinstance(leaf, Tensor) for leaf in tree_leaves(output)):
        raise TypeError(
            f"a job's output must be a tensor, or tensors in a tuple, list or dict; got "
            f"{type(output).__name__}"
        )
    return tree_map_only(Tensor, Tensor.detach, output)


def normalised(direction: Vectors, layout: Layout) -> Vectors:
    """The same directions, with norm 1 in each row."""
    return direction / row_norms(direction, layout).clamp(min=1e-12)


def row_norms(x: Vectors, layout: Layout) -> Tensor:
    """The norm of each row over all its vectors, in a shape that broadcasts to its tokens."""
    squares = x.float().square().sum(-1)  # (B, T) or (N,)
    squares = squares.masked_fill(~layout.real, 0.0)
    if layout.row_of is None:
        return squares.sum(1).sqrt()[:, None, None].to(x.dtype)  # (B, 1, 1)
    rows = squares.new_zeros(layout.rows).index_add(0, layout.row_of, squares)
    return rows.sqrt()[layout.row_of, None].to(x.dtype)  # (N, 1)
