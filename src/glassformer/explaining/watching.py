"""Watching: what every softmax attention of a model looked at, whatever kernel runs.

The model itself is left alone: a twin that shares its weights does the watching.

    with watching(model) as (twin, maps):
        twin(tokens, layout=layout)
    maps["decoder.blocks.0.attention"]  # (B, H, T, S)
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.attention import MultiHeadAttention

Model = TypeVar("Model", bound=nn.Module)
Maps = dict[str, Float[Tensor, "B H T S"]]


@contextmanager
def watching(model: Model) -> Iterator[tuple[Model, Maps]]:
    """A twin of the model, and the weights of its softmax attentions, from its latest pass."""
    twin, maps = twin_of(model), Maps()
    hooks = [
        layer.register_forward_pre_hook(_recorder(maps, name), with_kwargs=True)
        for name, layer in twin.named_modules()
        if isinstance(layer, MultiHeadAttention)
    ]
    try:
        yield twin, maps
    finally:
        for hook in hooks:
            hook.remove()


def twin_of(model: Model) -> Model:
    """A copy of the modules around the very same weights."""
    shared = chain(model.parameters(), model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})


def _recorder(maps: Maps, name: str) -> Any:
    def record(layer: MultiHeadAttention, args: Any, kwargs: dict[str, Any]) -> None:
        if kwargs.pop("cache", None) is not None:
            raise ValueError("watching sees whole passes; run the twin without caches")
        with torch.no_grad():
            maps[name] = layer.weights(*args, **kwargs)

    return record
