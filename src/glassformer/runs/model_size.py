"""Whether a model fits this machine, checked before it is built.

The model is built without storage (PyTorch's `meta` device), one and two layers deep; every further
layer takes as much as the second. So a model of ten thousand layers is refused at once.
"""

from collections.abc import Callable
from dataclasses import astuple, replace

import torch

from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.runs.display import in_bytes
from glassformer.runs.warm_start import fresh_model
from glassformer.tasks.job import AnyTask
from glassformer.training import memory
from glassformer.training.cost import StateBytes, state_bytes
from glassformer.training.machine import Machine

STACKS = ("encoder", "decoder")


class TooLargeError(GlassformerError):
    """A model does not fit; with what it needs and what is available."""

    def __init__(self, needs: StateBytes, room: int, message: str) -> None:
        self.needs, self.room = needs, room
        super().__init__(message)


def predicted_bytes(config: Config, job_of: Callable[[Config], AnyTask]) -> StateBytes:
    """Memory for training this model, if nothing is frozen."""

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


def refuse_too_large(config: Config, machine: Machine, job_of: Callable[[Config], AnyTask]) -> None:
    """Refuse a model that does not fit, whatever the batch size."""
    needs, has = predicted_bytes(config, job_of), memory.capacity(machine.device)
    learns = "weights" if config.train.freeze else "weights, gradients and optimiser"
    needed = needs.weights if config.train.freeze else needs.total
    if has is not None and needed > has:
        raise TooLargeError(
            needs,
            has,
            f"this model does not fit: its {learns} take {in_bytes(needed)}, but {machine.device} "
            f"has {in_bytes(has)} available; use a smaller --size, or a smaller dim or depth of "
            f"model.{' and model.'.join(depths_of(config))}",
        )


def depths_of(config: Config) -> dict[str, int]:
    """The number of layers of each stack."""
    return {name: stack.depth for name in STACKS if (stack := getattr(config.model, name))}
