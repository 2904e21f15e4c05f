"""Cross-entropy of an output layer over a large vocabulary, some tokens at a time.

The scores of all tokens of a batch over all of a vocabulary are by far its largest tensor. Here
only those of a chunk exist at a time. In training their gradients take their place in memory, and
go through the output layer at once, so that no score is computed twice.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.scoring import capped
from glassformer.models.losses.scores import losses_and_gradients, with_gradients

CHUNK = {"cpu": 2**25, "cuda": 2**31}  # scores at a time


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
    device = x.device.type
    low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    grad_x, grad_weight = torch.empty_like(x), torch.empty_like(weight)
    total = torch.zeros((), device=x.device)
    with torch.no_grad(), torch.autocast(device, enabled=False):
        table = weight.to(low)
        parts = chunks(x.to(low), labels, grad_x, scores=len(weight))
        for number, (some, y, grad) in enumerate(parts):
            scores = some @ table.T
            total += losses_and_gradients(scores, y, scores, softcap, smoothing).sum()
            grad.copy_(scores @ table)
            add_product(grad_weight, scores.T, some, fresh=number == 0)
    return with_gradients(total, [x, weight], [grad_x, grad_weight])


def add_product(total: Float[Tensor, "V D"], a: Tensor, b: Tensor, *, fresh: bool) -> None:
    """Add a product of matrices in place, whatever their type; `fresh`, over what stood there."""
    if total.dtype == a.dtype:
        total.addmm_(a, b, beta=0 if fresh else 1)
    elif fresh:
        total.copy_(a @ b)
    else:
        total += a @ b


def chunks(*rows: Tensor, scores: int) -> Iterator[tuple[Tensor, ...]]:
    """Parts of these tensors, about equal, each of as many rows as have room for their scores."""
    most = CHUNK.get(rows[0].device.type, CHUNK["cpu"]) // scores
    count = max(1, math.ceil(len(rows[0]) / max(1, most)))
    return zip(*(x.tensor_split(count) for x in rows), strict=True)
