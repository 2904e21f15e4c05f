"""Gradients: how the score changes with the vectors that the frontend gives.

gradient x input    x · ∂score/∂x    Shrikumar et al., 2016
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors
from glassformer.explaining.methods.method import Influence
from glassformer.explaining.subject import Subject

Points = Float[Tensor, "copies rows T D"]
Gradients = Float[Tensor, "targets copies rows T D"]


def gradient_x_input(subject: Subject) -> Influence:
    """The gradient at each vector times the vector."""
    x, gradients, _ = gradients_at(subject, 1, lambda x: x)
    return subject.by_piece((gradients * x).sum(-1)[:, 0])


def gradients_at(
    subject: Subject, copies: int, points: Callable[[Points], Points]
) -> tuple[Points, Gradients, Float[Tensor, "copies targets"]]:
    """Vectors, the gradient of each target's score there, and the scores.

    Args:
        points: From the vectors of each copy of the input to those that are read instead.
    """
    held: list[Tensor] = []

    def hold(x: Vectors, layout: Layout) -> Vectors:
        by_copy = x.detach().unflatten(0, (copies, -1))
        held.append(points(by_copy).flatten(0, 1).requires_grad_())
        return held[0]

    with torch.enable_grad():
        scores = subject.scores(subject.model, copies=copies, noise=hold)
        found = [torch.autograd.grad(score, held, retain_graph=True)[0] for score in scores.sum(0)]
    x = held[0].detach().unflatten(0, (copies, -1))
    return x, torch.stack(found).unflatten(1, (copies, -1)), scores.detach()
