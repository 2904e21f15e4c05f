"""Cross-entropy over a large vocabulary, some tokens at a time.

The scores of all tokens of a batch over all of a vocabulary are by far its largest tensor. Here
only those of a chunk exist at a time. Training needs the sum of the losses alone, whose gradient is
known as soon as the scores are,

    d loss / d score = softmax(score) - [1 at the label, else 0]

so it takes their place in memory, goes through the output layer at once, and no score is computed
twice.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.utils._triton import has_triton

from glassformer.core.scoring import capped

if has_triton():
    from glassformer.models import triton_loss

CHUNK = {"cpu": 2**24, "cuda": 2**30}  # scores at a time
IGNORED = -100  # a label that counts nothing


def cross_entropies(
    x: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    labels: Int[Tensor, " N"],
    *,
    softcap: float | None = None,
) -> Float[Tensor, " N"]:
    """The cross-entropy of each label, in fp32, without gradients; 0 where it is ignored.

    Args:
        weight: Of the output layer, whose scores are `x @ weight.T`.
        softcap: Scores stay within ± this limit.
    """
    with torch.no_grad():
        return torch.cat(
            [
                F.cross_entropy(capped(F.linear(x, weight), softcap).float(), y, reduction="none")
                for x, y in chunks(x, labels, scores=len(weight))
            ]
        )


def summed_cross_entropy(
    x: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    labels: Int[Tensor, " N"],
    *,
    softcap: float | None = None,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """The sum of all cross-entropies, in fp32, with gradients.

    Args:
        smoothing: Share of each label that is spread over the whole vocabulary.
    """
    total: Tensor = SummedCrossEntropy.apply(x, weight, labels, softcap, smoothing)
    return total


class SummedCrossEntropy(torch.autograd.Function):
    """A forward pass that computes its gradients too; the backward pass only scales them."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        x: Tensor,
        weight: Tensor,
        labels: Tensor,
        softcap: float | None,
        smoothing: float,
    ) -> Tensor:
        device = x.device.type
        low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        table, total = weight.to(low), torch.zeros((), device=x.device)
        grad_x, grad_weight = torch.empty_like(x), torch.zeros_like(weight)
        with torch.autocast(device, enabled=False):
            for some, y, grad in chunks(x.to(low), labels, grad_x, scores=len(weight)):
                scores = some @ table.T
                total += losses_into_gradients(scores, y, softcap, smoothing).sum()
                grad.copy_(scores @ table)
                grad_weight += scores.T @ some
        ctx.save_for_backward(grad_x, grad_weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_x, grad_weight = ctx.saved_tensors
        return grad_x * grad, grad_weight * grad, None, None, None


def losses_into_gradients(
    scores: Float[Tensor, "n V"],
    labels: Int[Tensor, " n"],
    softcap: float | None,
    smoothing: float,
) -> Float[Tensor, " n"]:
    """The losses of a chunk; their gradients replace the scores."""
    if has_triton() and scores.is_cuda and softcap is None:
        return triton_loss.losses_into_gradients(scores, labels, smoothing)
    x = capped(scores.float(), softcap)
    counts, right = labels != IGNORED, labels.clamp(min=0)
    each, spread = torch.arange(len(x), device=x.device), smoothing / x.shape[1]
    log_p = x.log_softmax(-1)
    losses = -(1 - smoothing) * log_p[each, right] - spread * log_p.sum(-1)
    gradient = log_p.exp_().sub_(spread)
    gradient[each, right] -= 1 - smoothing
    if softcap is not None:
        gradient *= 1 - (x / softcap) ** 2
    scores.copy_(gradient * counts[:, None])
    return losses * counts


def chunks(*rows: Tensor, scores: int) -> Iterator[tuple[Tensor, ...]]:
    """Parts of these tensors, about equal, each of as many rows as have room for their scores."""
    most = CHUNK.get(rows[0].device.type, CHUNK["cpu"]) // scores
    count = math.ceil(len(rows[0]) / max(1, most))
    return zip(*(x.tensor_split(count) for x in rows), strict=True)
