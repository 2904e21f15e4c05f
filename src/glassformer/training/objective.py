"""What a step makes smaller: the job's loss, and what holds the model back from learning by heart.

    R-Drop    two passes with different dropout should agree               Liang et al., 2021
                  loss = (loss₁ + loss₂) / 2 + weight · (D(1 ‖ 2) + D(2 ‖ 1)) / 2
    VAT       the worst small change of the input should change little     Miyato et al., 2016
                  loss = loss + weight · D(clean ‖ changed)

Both need of a job only its `forward` and its `divergence`.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from glassformer.config import RegulariserConfig, VirtualAdversaryConfig
from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors
from glassformer.tasks.task import Loss, SomeBatch, Task


def objective(
    model: nn.Module, task: Task, batch: SomeBatch, config: RegulariserConfig, seed: int
) -> tuple[Tensor, Loss]:
    """What to take the gradient of, a sum over the batch, and the job's own loss in it."""
    torch.manual_seed(seed)
    output = task.forward(model, batch)
    loss = task.loss(output, batch)
    total = loss.total
    if config.r_drop:
        other = task.forward(model, batch)
        apart = task.divergence(output, other, batch).total
        apart = (apart + task.divergence(other, output, batch).total) / 2
        total = (total + task.loss(other, batch).total) / 2 + config.r_drop * apart
    if config.vat.weight:
        total = total + config.vat.weight * adversary(model, task, batch, output, config.vat, seed)
    return total, loss


def adversary(
    model: nn.Module,
    task: Task,
    batch: SomeBatch,
    output: Any,
    config: VirtualAdversaryConfig,
    seed: int,
) -> Tensor:
    """How much the answer changes under the worst small change, as a sum over the batch.

    Each row moves by a share of its own length, taken over all its vectors. All passes use the
    same dropout, so that they differ by the change alone.
    """
    clean = detached(output)
    probe = Probe(config.probe, seed + 1)
    torch.manual_seed(seed)
    apart = task.divergence(clean, task.forward(model, batch, noise=probe), batch).total
    assert probe.direction is not None  # the frontend called it
    (worst,) = torch.autograd.grad(apart, probe.direction)
    torch.manual_seed(seed)
    changed = task.forward(model, batch, noise=Push(config.distance, worst))
    return task.divergence(clean, changed, batch).total


class Probe:
    """Noise at a frontend's output: a small step in a random direction, kept for its gradient.

    Its dice are its own, so that dropout after it falls as it does without it.
    """

    def __init__(self, length: float, seed: int) -> None:
        self.length, self.seed = length, seed
        self.direction: Tensor | None = None

    @torch.compiler.disable  # a generator and a new leaf have no place in a graph
    def __call__(self, x: Vectors, layout: Layout) -> Vectors:
        dice = torch.Generator(x.device).manual_seed(self.seed)
        chosen = torch.randn(x.shape, generator=dice, device=x.device, dtype=x.dtype)
        self.direction = unit(chosen, layout).requires_grad_()
        return x + self.length * row_lengths(x.detach(), layout) * self.direction


class Push:
    """Noise at a frontend's output: a step in a given direction."""

    def __init__(self, length: float, direction: Vectors) -> None:
        self.length, self.direction = length, direction

    def __call__(self, x: Vectors, layout: Layout) -> Vectors:
        return x + self.length * row_lengths(x.detach(), layout) * unit(self.direction, layout)


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
