"""Whether a model can be trained here at all, known before a number of it is in memory.

The model is built without numbers (PyTorch's `meta` device), one and two layers deep; every layer
more takes as much as the second. So a model of ten thousand layers is refused at once.
"""

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Any

import torch

from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.runs.display import in_bytes
from glassformer.runs.warm_start import fresh_model
from glassformer.tasks.job import JobTask
from glassformer.training import memory
from glassformer.training.cost import StateBytes, state_bytes
from glassformer.training.machine import Machine

STACKS = ("encoder", "decoder")


class TooLargeError(GlassformerError):
    """A model that does not fit, what it needs, and what there is."""

    def __init__(self, needs: StateBytes, room: int, said: str) -> None:
        self.needs, self.room = needs, room
        super().__init__(said)


def foreseen_bytes(
    config: Config, job_of: Callable[[Config], JobTask[Any, Any, Any]]
) -> StateBytes:
    """What training this model would hold, if all of it learned."""

    def bytes_of(**depths: int) -> StateBytes:
        stacks = {
            name: replace(getattr(config.model, name), depth=depth)
            for name, depth in depths.items()
        }
        shallow = replace(config, model=replace(config.model, **stacks))
        with torch.device("meta"):
            return state_bytes(fresh_model(job_of(shallow), config.seed), config.train)

    deep = depths_of(config)
    flat = dict.fromkeys(deep, 1)
    first = total = astuple(bytes_of(**flat))
    for name, depth in deep.items():
        if depth > 1:
            second = astuple(bytes_of(**flat | {name: 2}))
            layer = [b - a for a, b in zip(first, second, strict=True)]
            total = tuple(t + (depth - 1) * more for t, more in zip(total, layer, strict=True))
    return StateBytes(*total)


def refuse_too_large(
    config: Config, machine: Machine, job_of: Callable[[Config], JobTask[Any, Any, Any]]
) -> None:
    """Refuse a model that does not fit, however small its batches are."""
    needs, has = foreseen_bytes(config, job_of), memory.room(machine.device)
    learns = "weights" if config.train.freeze else "weights, gradients and optimiser"
    wanted = needs.weights if config.train.freeze else needs.total
    if has is not None and wanted > has:
        raise TooLargeError(
            needs,
            has,
            f"this model does not fit: its {learns} take {in_bytes(wanted)}, and {machine.device} "
            f"has {in_bytes(has)} for it; use a smaller --size, or a smaller model.encoder.dim or "
            f"depth",
        )


def depths_of(config: Config) -> dict[str, int]:
    """How many layers each stack of the model has."""
    return {name: stack.depth for name in STACKS if (stack := getattr(config.model, name))}
