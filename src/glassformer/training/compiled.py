"""torch.compile for a model's stacks, or for their blocks.

In eager mode a block reads and writes its activations a dozen times; compiled, a few times. Blocks
of the same shape share one compilation. A whole stack takes longer to compile, and runs a little
faster, as the end of a block is then fused with the start of the next.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from torch import nn

from glassformer.models.frontends import Tokens
from glassformer.models.stacks import Stack


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
    """Stacks and embeddings as wholes, or the blocks of all stacks."""
    for module in model.modules():
        if whole and isinstance(module, Stack | Tokens):
            yield module
        elif not whole and isinstance(module, Stack):
            yield from cast(nn.ModuleList, module.blocks)
