"""Nearest rows: what lies closest to an input in the space of the encoder.

A sequence is the mean of the vectors that the encoder makes of it, or the decoder of a model that
has no encoder; two are as close as the cosine of the angle between them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.explaining.copies import Model, eager_copy
from glassformer.explaining.subject import Subject
from glassformer.models.pooling import MeanPool

Pooled = list[Float[Tensor, "rows D"]]


@contextmanager
def pooling(model: Model) -> Iterator[tuple[Model, Pooled]]:
    """A copy of a model, and the mean vector of each row that it reads."""
    copy, pooled = eager_copy(model), Pooled()

    def record(module: nn.Module, args: Any, kwargs: dict[str, Any], x: Tensor) -> None:
        pooled.append(MeanPool(x.shape[-1])(x.detach(), kwargs["layout"]).float())

    stack = getattr(copy, "encoder", None) or getattr(copy, "decoder", None)
    if not isinstance(stack, nn.Module):
        raise ValueError("this model has neither an encoder nor a decoder to compare inputs by")
    stack.register_forward_hook(record, with_kwargs=True)
    yield copy, pooled


@torch.no_grad()
def vector_of(subject: Subject) -> Float[Tensor, " D"]:
    """The vector of an input: of several rows, their mean."""
    with pooling(subject.model) as (copy, pooled):
        subject.scores(copy)
    return pooled[0].mean(0)


def nearest(
    vector: Float[Tensor, " D"], others: Float[Tensor, "rows D"], most: int
) -> list[tuple[int, float]]:
    """The rows of `others` with the largest cosine, and that."""
    similar = F.cosine_similarity(others, vector[None].to(others), dim=1)
    best = similar.topk(min(most, len(others)))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
