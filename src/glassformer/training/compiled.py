"""torch.compile for the blocks of a model's stacks, and for its losses.

In eager mode a block reads and writes its activations a dozen times; compiled, a few times. Blocks
of the same shape share one compilation, which takes seconds; a whole model would take minutes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import nn

from glassformer.models.stacks import Stack
from glassformer.models.transformer import Noise
from glassformer.tasks.task import Task


def compile_blocks(model: nn.Module, *, dynamic: bool) -> None:
    """Compile the blocks of all stacks, each at its first call."""
    for block in blocks_of(model):
        block.compile(dynamic=dynamic)


@contextmanager
def compiled_blocks(model: nn.Module) -> Iterator[None]:
    """Compile the blocks for batches of one shape, for the duration of the context."""
    compile_blocks(model, dynamic=False)
    try:
        yield
    finally:
        for block in blocks_of(model):
            block._compiled_call_impl = None


def blocks_of(model: nn.Module) -> Iterator[nn.Module]:
    """The blocks of all stacks of a model."""
    for module in model.modules():
        if isinstance(module, Stack):
            yield from cast(nn.ModuleList, module.blocks)


class CompiledLosses:
    """A task whose loss and divergence are compiled."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.loss = torch.compile(task.loss, dynamic=False)
        self.divergence = torch.compile(task.divergence, dynamic=False)

    def forward(self, model: nn.Module, batch: Any, *, noise: Noise | None = None) -> Any:
        """The task's forward."""
        return self.task.forward(model, batch, noise=noise)
