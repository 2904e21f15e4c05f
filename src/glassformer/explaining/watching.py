"""Watching: the weights of every softmax attention in a model, whatever kernel runs.

The model itself is unchanged: the weights are recorded in a copy that shares its parameters.

    with watching(model) as (watched, maps):
        watched(tokens, layout=layout)
    maps["decoder.blocks.0.attention"]  # (B, H, T, S)
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.attention import MultiHeadAttention
from glassformer.models.baselines.bahdanau import BahdanauDecoder

Model = TypeVar("Model", bound=nn.Module)
Output = TypeVar("Output")
Maps = dict[str, Float[Tensor, "B H T S"]]


@contextmanager
def watching(model: Model) -> Iterator[tuple[Model, Maps]]:
    """A copy of the model, and the weights of its softmax attentions in the latest pass."""
    watched, maps = shared_copy(model), Maps()
    hooks = [
        layer.register_forward_pre_hook(_recorder(maps, name), with_kwargs=True)
        for name, layer in watched.named_modules()
        if isinstance(layer, MultiHeadAttention)
    ]
    try:
        yield watched, maps
    finally:
        for hook in hooks:
            hook.remove()


def cross_attention(
    model: Model, run: Callable[[Any], Output]
) -> tuple[Output, Float[Tensor, "layers H T S"]]:
    """What `run` returns for a copy of a model, and the weights of its decoder's look across.

    Args:
        run: Makes one pass over one row.
    """
    steps: list[Tensor] = []
    with watching(model) as (watched, maps):
        if isinstance(watched.decoder, BahdanauDecoder):
            scorer = watched.decoder.attention.to_score
            scorer.register_forward_hook(lambda _, inputs, scores: steps.append(scores))
        output = run(watched)
    if steps:  # (1, S, 1) each
        return output, torch.cat(steps, -1).mT.softmax(-1)[:, None]
    across = [weights for name, weights in maps.items() if name.endswith("cross_attention")]
    return output, torch.cat(across)


def shared_copy(model: Model) -> Model:
    """A copy of the modules that shares all parameters and buffers."""
    shared = chain(model.parameters(), model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})


def _recorder(maps: Maps, name: str) -> Any:
    def record(layer: MultiHeadAttention, args: Any, kwargs: dict[str, Any]) -> None:
        if kwargs.pop("cache", None) is not None:
            raise ValueError("watching needs whole passes; run the copy without caches")
        with torch.no_grad():
            maps[name] = layer.weights(*args, **kwargs)

    return record
