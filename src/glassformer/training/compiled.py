"""Parts of a step compiled: the blocks of its stacks, and its losses.

Kernel by kernel, a block reads and writes its vectors a dozen times; compiled, a few times. Equal
blocks share one compilation, which takes seconds where that of a whole model takes minutes.
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
    """Compile the blocks of all stacks, each when it is first called."""
    for block in blocks_of(model):
        block.compile(dynamic=dynamic)


@contextmanager
def compiled_blocks(model: nn.Module) -> Iterator[None]:
    """The blocks compiled for a while, for batches of one shape."""
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
    """A task's losses, compiled."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.loss = torch.compile(task.loss, dynamic=False)
        self.divergence = torch.compile(task.divergence, dynamic=False)

    def forward(self, model: nn.Module, batch: Any, *, noise: Noise | None = None) -> Any:
        """As the task does."""
        return self.task.forward(model, batch, noise=noise)
