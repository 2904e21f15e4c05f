"""Watching: the weights of every attention in a model, whatever kernel runs.

The model itself is unchanged: the weights are recorded in an eager copy that shares its parameters.

    with watching(model) as (watched, maps):
        watched(tokens, layout=layout)
    maps["decoder.blocks.0.attention"]                          # (B, H, T, S)
    maps.rows("decoder.blocks.0.attention", queries=[-1])       # (B, H, 1, S)

Queries and keys are recorded, and weights computed when they are read, so that a long input needs
no memory for weights that nobody reads. What is shown, by kind of attention:

    softmax     the weights, as `kernels/plain.py` computes them; dropout is left out
    linear      the normalised products of features, which its sums stand for
    linformer   the weights of the summary's keys, not of the tokens that they are summed from
    additive    the weights of a recurrent decoder at each of its steps (Bahdanau et al., 2014)
    pooling     the weights of an attention pool, as one head and one query

With a cache, they are the weights of the latest tokens over all keys it holds; while branches are
decoded, over the slots of a `BranchingCache`, where each branch sees its own ancestors.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.caches import Cache, Memory, StateCache
from glassformer.core.dropout import dropout
from glassformer.core.int8 import Int8Linear
from glassformer.core.kernels import Call
from glassformer.core.kernels.forms import clean_call, packed_up, padded_call
from glassformer.core.kernels.plain import share
from glassformer.core.layer import AttentionLayer
from glassformer.core.shapes import Answers, Keys, Queries, Values, Vectors
from glassformer.errors import unknown
from glassformer.explaining.copies import Model, eager_copy
from glassformer.explaining.recording import (
    Choice,
    Held,
    Recorded,
    Recording,
    Shape,
    Unreadable,
)
from glassformer.explaining.spread import Spread, spread_words, unspread
from glassformer.models.baselines.bahdanau import BahdanauDecoder
from glassformer.models.pooling import AttentionPool

Output = TypeVar("Output")
PIECE = 2**22  # weights computed at once


class Maps(Mapping[str, Float[Tensor, "B H T S"]]):
    """The weights of each attention layer in the latest pass, by its path in the model."""

    def __init__(self) -> None:
        self.recordings: dict[str, Recording] = {}

    def __getitem__(self, name: str) -> Float[Tensor, "B H T S"]:
        return self._of(name).rows(None, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.recordings)

    def __len__(self) -> int:
        return len(self.recordings)

    def shape(self, name: str) -> Shape:
        """(B, H, T, S) of a layer's weights, none of which are computed."""
        return self._of(name).shape

    def rows(
        self, name: str, *, heads: Choice = None, queries: Choice = None
    ) -> Float[Tensor, "B h t S"]:
        """The weights of some heads and queries of a layer; no others are computed."""
        return self._of(name).rows(heads, queries)

    def only(self, *names: str) -> "Maps":
        """The same with some of the layers, so that what reads all of them computes no others."""
        found = Maps()
        found.recordings = {name: self._of(name) for name in names}
        return found

    def by_member(self) -> "list[Maps]":
        """The layers of each member of an ensemble, which follow each other; else all together."""
        found: dict[str, list[str]] = {}
        for name in self:
            _, _, rest = name.partition(".members.")
            found.setdefault(rest.partition(".")[0], []).append(name)
        return [self.only(*names) for names in found.values()]

    def pieces(self, name: str, *, most: int = PIECE) -> Iterator[Float[Tensor, "B H t S"]]:
        """All weights of a layer, a few queries at a time, so that few exist at once."""
        rows, heads, queries, keys = self.shape(name)
        size = max(1, most // max(1, rows * heads * keys))
        for start in range(0, queries, size):
            yield self.rows(name, queries=slice(start, start + size))

    def gradients(self, score: Float[Tensor, ""]) -> dict[str, Float[Tensor, "B H T S"]]:
        """The derivative of a score by every weight, of `watching(..., gradients=True)`.

        The graph is kept, so that another score can follow.
        """
        inside = {name: unspread(one) for name, one in self.recordings.items()}
        held = {name: one for name, one in inside.items() if isinstance(one, Held)}
        if not held or not all(step.requires_grad for one in held.values() for step in one.steps):
            raise ValueError(
                "no gradients pass through these weights; "
                "use watching(model, gradients=True), and run the copy with gradients"
            )
        steps = [step for one in held.values() for step in one.steps]
        found = iter(
            torch.autograd.grad(
                score, steps, retain_graph=True, allow_unused=True, materialize_grads=True
            )
        )
        by = {name: torch.cat([next(found) for _ in one.steps], 2) for name, one in held.items()}
        return {
            name: one.spread(by[name]) if isinstance(one, Spread) else by[name]
            for name, one in self.recordings.items()
            if name in by
        }

    def _of(self, name: str) -> Recording:
        if name not in self.recordings:
            raise KeyError(unknown("attention layer", name, self.recordings))
        return self.recordings[name]


@contextmanager
def watching(
    model: Model, *, layers: Collection[str] | None = None, gradients: bool = False
) -> Iterator[tuple[Model, Maps]]:
    """A copy of the model, and the weights of its attention layers in the latest pass.

    Args:
        layers: The names of the layers to record; all by default.
        gradients: Whether answers are computed from the weights that are recorded, which are then
            part of the graph: attention takes the memory of all its weights.
    """
    watched, maps = eager_copy(model), Maps()
    there = attention_layers(watched)
    for name in there if layers is None else layers:
        if name not in there:
            raise ValueError(unknown("attention layer", name, there))
    if gradients:
        _refuse_int8(watched)
    for name, layer in there.items():
        if layers is None or name in layers:
            _watch(layer, name, maps, gradients)
    spread_words(watched, maps.recordings)
    yield watched, maps


def attention_layers(model: nn.Module) -> dict[str, nn.Module]:
    """What can be watched in a model, by name."""
    found: dict[str, nn.Module] = {}
    for name, module in model.named_modules():
        if isinstance(module, AttentionLayer | AttentionPool):
            found[name] = module
        elif isinstance(module, BahdanauDecoder):
            found[f"{name}.attention".removeprefix(".")] = module
    return found


def cross_attention(
    model: Model, run: Callable[[Any], Output]
) -> tuple[Output, Float[Tensor, "layers H T S"]]:
    """What `run` returns for a copy of a model, and the weights of its decoder's look across.

    Args:
        run: Makes one pass over one row.
    """
    names = cross_attentions(model)
    with torch.no_grad(), watching(model, layers=names) as (watched, maps):
        output = run(watched)
    return output, torch.cat([maps[name] for name in names])


def cross_attentions(model: nn.Module) -> list[str]:
    """The names of the layers with which a decoder attends to its source."""
    return [
        name
        for name, layer in attention_layers(model).items()
        if name.endswith("cross_attention") or isinstance(layer, BahdanauDecoder)
    ]


def _watch(layer: nn.Module, name: str, maps: Maps, gradients: bool) -> None:
    """Have a layer of a copy record its calls."""
    if isinstance(layer, AttentionLayer):
        attend = _attends_by_weights if gradients else _attends
        vars(layer)["attend"] = attend(layer, name, maps)
    elif isinstance(layer, BahdanauDecoder):
        _watch_steps(layer, name, maps, gradients)
    elif isinstance(layer, AttentionPool):
        _watch_pool(layer, name, maps, gradients)


def _attends(layer: AttentionLayer, name: str, maps: Maps) -> Callable[..., Answers]:
    """The layer's own way to attend, and a recording of it."""
    original = layer.attend

    def attend(q: Queries, k: Keys, v: Values, call: Call, cache: Cache | None = None) -> Answers:
        _refuse_capture(q)
        continues = isinstance(cache, StateCache) and cache.state is not None
        answers = original(q, k, v, call, cache)
        if continues:
            maps.recordings[name] = Unreadable()
        elif call.branches is not None:  # few queries, of a cache that will change
            with torch.no_grad():
                maps.recordings[name] = Held([layer.weigh(q, k, call)])
        else:
            maps.recordings[name] = Recorded(layer, q, k, call)
        return answers

    return attend


def _attends_by_weights(layer: AttentionLayer, name: str, maps: Maps) -> Callable[..., Answers]:
    """Attention by the weights themselves, which are held."""

    def attend(q: Queries, k: Keys, v: Values, call: Call, cache: Cache | None = None) -> Answers:
        if isinstance(cache, StateCache) and cache.state is not None:
            raise ValueError(
                "linear attention keeps no keys that gradients could pass to; "
                "run the copy over the whole sequence, without caches"
            )
        form = call.queries
        q, k, v, call = padded_call(*clean_call(q, k, v, call))
        weights = layer.weigh(q, k, call)
        maps.recordings[name] = Held([weights])
        answers = dropout(weights, call.dropout) @ share(v, q)
        return packed_up(answers, form) if form.is_packed else answers

    return attend


def _watch_steps(decoder: BahdanauDecoder, name: str, maps: Maps, gradients: bool) -> None:
    """Record the steps of a recurrent decoder, all those of a pass together."""
    original = decoder.weigh

    def weigh(query: Float[Tensor, "B D"], memory: Memory) -> Float[Tensor, "B 1 S"]:
        weights = original(query, memory)[:, None]
        recording = maps.recordings[name]
        assert isinstance(recording, Held)
        recording.steps.append(weights if gradients else weights.detach())
        return weights[:, 0]

    def begin(*_: Any) -> None:
        maps.recordings[name] = Held([])

    vars(decoder)["weigh"] = weigh
    decoder.register_forward_pre_hook(begin)


def _watch_pool(pool: AttentionPool, name: str, maps: Maps, gradients: bool) -> None:
    original = pool.weigh

    def weigh(x: Vectors, real: Tensor) -> Float[Tensor, "B positions 1"]:
        weights = original(x, real).mT[:, None]  # (B, 1, 1, S)
        maps.recordings[name] = Held([weights if gradients else weights.detach()])
        return weights[:, 0].mT

    vars(pool)["weigh"] = weigh


def _refuse_int8(model: nn.Module) -> None:
    if any(isinstance(module, Int8Linear) for module in model.modules()):
        raise ValueError(
            "layers in int8 have no gradients; watch the model that they were made from"
        )


def _refuse_capture(q: Queries) -> None:
    if q.is_cuda and torch.cuda.is_current_stream_capturing():
        raise ValueError(
            "a step that is captured as a CUDA graph cannot be watched; "
            "decode with capture=False, or run the copy over the whole sequence"
        )
