"""Pruning: which heads can go together before the score gets worse.

Heads are ordered by how much the loss depends on them,

    importance = mean over rows of |∂ loss / ∂ gate|        gate: a factor on the head's output, 1

each layer's scaled to length 1, and removed from the least important on, a few at a time, until the
score gets worse. Michel et al., "Are Sixteen Heads Really Better than One?", 2019. Nothing is
trained again, so the share of heads that can go is a lower bound.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.kernels import Call
from glassformer.core.layer import AttentionLayer
from glassformer.core.shapes import Answers, Keys, Queries, Values
from glassformer.explaining.ablation import Part, ablated, heads_of
from glassformer.explaining.copies import Model, eager_copy
from glassformer.metrics.paired import Comparison

STEPS = 20  # evaluations at most

Gates = dict[str, Float[Tensor, "B H"]]


@dataclass(frozen=True, slots=True)
class PruningStep:
    """The model without some heads, compared with the whole one.

    Attributes:
        removed: All heads that are gone, in the order of their removal.
        comparison: Without them minus with them.
        worse: Whether the score is too much worse.
    """

    removed: tuple[Part, ...]
    comparison: Comparison
    worse: bool


def prune(
    model: Model,
    order: Sequence[Part],
    compare: Callable[[Model], Comparison],
    *,
    higher_is_better: bool = True,
    tolerance: float = 0.0,
    steps: int = STEPS,
) -> Iterator[PruningStep]:
    """Remove heads in this order, a few at a time, until the score gets worse.

    The last few are then removed one by one, until it gets worse again: by more than `tolerance`,
    or without doubt, by the interval of the difference.

    Args:
        compare: The score of a model compared with that of the whole one, the given one first.
    """
    size, kept = -(-len(order) // steps), 0

    def without(count: int) -> PruningStep:
        comparison = compare(ablated(model, order[:count]))
        worse = is_worse(comparison, higher_is_better=higher_is_better, tolerance=tolerance)
        return PruningStep(tuple(order[:count]), comparison, worse)

    for count in (*range(size, len(order), size), len(order)):
        yield (step := without(count))
        if step.worse:
            break
        kept = count
    for count in range(kept + 1, min(kept + size, len(order))):
        yield (step := without(count))
        if step.worse:
            break


def is_worse(comparison: Comparison, *, higher_is_better: bool, tolerance: float) -> bool:
    """Whether the first of two systems is worse by more than the tolerance, or certainly worse."""
    difference = comparison.difference
    if higher_is_better:
        return difference.value < -tolerance or difference.high < 0
    return difference.value > tolerance or difference.low > 0


def by_importance(
    model: nn.Module, losses: Callable[[nn.Module], Iterable[Float[Tensor, ""]]]
) -> list[Part]:
    """The heads of a model, the least important first.

    Args:
        losses: Passes of a model over some batches, each of which yields the sum of its rows'
            losses.
    """
    heads, found = heads_of(model), head_importance(model, losses)
    return sorted(heads, key=lambda part: float(found[part.path][part.head or 0]))


def head_importance(
    model: nn.Module, losses: Callable[[nn.Module], Iterable[Float[Tensor, ""]]]
) -> dict[str, Float[Tensor, " H"]]:
    """How much the loss depends on each head, by layer, each layer's scaled to length 1."""
    twin, gates = eager_copy(model), Gates()
    totals: dict[str, Tensor] = {}
    for path in dict.fromkeys(part.path for part in heads_of(model)):
        layer = twin.get_submodule(path)
        assert isinstance(layer, AttentionLayer)
        vars(layer)["attend"] = _gated(layer, path, gates)
    with torch.enable_grad():
        for loss in losses(twin):
            pushes = torch.autograd.grad(loss, list(gates.values()), materialize_grads=True)
            for path, push in zip(gates, pushes, strict=True):
                totals[path] = totals.get(path, 0) + push.abs().sum(0)
            gates.clear()
    return {path: total / total.norm().clamp(min=1e-30) for path, total in totals.items()}


def _gated(layer: AttentionLayer, path: str, gates: Gates) -> Callable[..., Answers]:
    """The layer's way to attend, with a gate on each head of each row."""
    original = layer.attend

    def attend(q: Queries, k: Keys, v: Values, call: Call, cache: Any = None) -> Answers:
        answers = original(q, k, v, call, cache)
        gate = answers.new_ones(call.queries.rows, layer.heads, requires_grad=True)
        gates[path] = gate
        if call.queries.row_of is not None:
            return answers * gate[call.queries.row_of][..., None]  # (N, H, W)
        return answers * gate[..., None, None]

    return attend
