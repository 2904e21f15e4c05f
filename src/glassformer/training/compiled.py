"""torch.compile for a model's stacks or their blocks, and for its losses.

In eager mode a block reads and writes its activations a dozen times; compiled, a few times. Blocks
of the same shape share one compilation. A whole stack takes longer to compile, and runs a little
faster, as the end of a block is then fused with the start of the next.
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
    for block in parts_of(model, whole=False):
        block.compile(dynamic=dynamic)


@contextmanager
def compiled_parts(model: nn.Module, *, whole: bool) -> Iterator[None]:
    """Compile stacks or blocks for batches of one shape, for the duration of the context."""
    for part in parts_of(model, whole=whole):
        part.compile(dynamic=False)
    try:
        yield
    finally:
        for part in parts_of(model, whole=whole):
            part._compiled_call_impl = None


def parts_of(model: nn.Module, *, whole: bool) -> Iterator[nn.Module]:
    """The stacks of a model as wholes, or the blocks of all."""
    for module in model.modules():
        if isinstance(module, Stack):
            yield from (module,) if whole else cast(nn.ModuleList, module.blocks)


class CompiledLosses:
    """A task whose loss and divergence are compiled."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.loss = torch.compile(task.loss, dynamic=False)
        self.divergence = torch.compile(task.divergence, dynamic=False)

    def forward(self, model: nn.Module, batch: Any, *, noise: Noise | None = None) -> Any:
        """The task's forward."""
        return self.task.forward(model, batch, noise=noise)
