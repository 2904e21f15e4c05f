"""Gradients: how the score changes with the vectors that the frontend gives.

    gradient norm           ‖∂score/∂x‖, without a sign                  Simonyan et al., 2013
    gradient x input        (x - b) · ∂score/∂x                          Shrikumar et al., 2016
    integrated gradients    (x - b) · the mean of ∂score/∂x from b to x  Sundararajan et al., 2017

The baseline b is an input that says nothing. The influences of integrated gradients sum up to the
difference between the scores of x and b (completeness): the way from b to x is cut into more and
more steps until they do.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors
from glassformer.explaining.methods.method import Influence
from glassformer.explaining.subject import Subject

STEPS, MOST_STEPS = 32, 512
INCOMPLETE = 0.005  # error allowed, as a share of the difference of scores, or of 1 if that is less
TOGETHER = 8192  # vectors that are read at once

Points = Float[Tensor, "copies rows T D"]
Gradients = Float[Tensor, "targets copies rows T D"]
Scores = Float[Tensor, "copies targets"]


def gradient_norm(subject: Subject) -> Influence:
    """How strongly the score depends on each vector, for or against."""
    _, gradients, _ = gradients_at(subject, 1, lambda x: x)
    return subject.by_piece(gradients.norm(dim=-1)[:, 0])


def gradient_x_input(subject: Subject) -> Influence:
    """The gradient at each vector times its difference from the baseline."""
    x, gradients, _ = gradients_at(subject, 1, lambda x: x)
    return subject.by_piece(((x - subject.baseline(x[0])) * gradients).sum(-1)[:, 0])


def integrated_gradients(subject: Subject) -> Influence:
    """The same with the mean gradient on the way from the baseline."""
    steps, found = STEPS, along(subject, STEPS)
    whole = ends(subject)
    while steps < MOST_STEPS and not complete(found, whole):
        steps *= 2
        found = along(subject, steps)
    return subject.by_piece(found)


def complete(found: Float[Tensor, "targets rows T"], whole: Float[Tensor, " targets"]) -> bool:
    """Whether the parts sum up to each whole: within 0.5 % of it, or 0.005 if it is less than 1."""
    error = (found.sum((1, 2)) - whole).abs()
    return bool((error <= INCOMPLETE * whole.abs().clamp(min=1)).all())


def ends(subject: Subject) -> Float[Tensor, " targets"]:
    """The difference between the scores of an input and of its baseline."""

    def both(x: Vectors, layout: Layout) -> Vectors:
        half = len(x) // 2
        return torch.cat([x[:half], subject.baseline(x[half:])])

    with torch.no_grad():
        scores = subject.scores(subject.model, copies=2, noise=both)
    return scores[0] - scores[1]


def along(subject: Subject, steps: int) -> Float[Tensor, "targets rows T"]:
    """The integral over so many steps, by the quadrature of Gauss and Legendre."""
    places, weights = np.polynomial.legendre.leggauss(steps)
    alphas = torch.tensor((places + 1) / 2, dtype=torch.float32)
    shares = torch.tensor(weights / 2, dtype=torch.float32)
    size = max(1, TOGETHER // subject.piece_of.numel())
    total, done = torch.zeros(()), 0
    for some, share in zip(alphas.split(size), shares.split(size), strict=True):
        some, share = some.to(subject.piece_of.device), share.to(subject.piece_of.device)

        def between(x: Points, some: Tensor = some) -> Points:
            base = subject.baseline(x[0])
            return base + some[:, None, None, None] * (x - base)

        _, gradients, _ = gradients_at(subject, len(some), between)
        total = total + torch.einsum("c,nc...->n...", share, gradients)
        done += len(some)
        subject.progress(done, steps)
    x, _, _ = gradients_at(subject, 1, lambda x: x)
    return ((x[0] - subject.baseline(x[0])) * total).sum(-1)


def gradients_at(
    subject: Subject, copies: int, points: Callable[[Points], Points]
) -> tuple[Points, Gradients, Scores]:
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
