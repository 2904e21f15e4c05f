"""Calls of a model that end between two layers once nobody waits for their answer."""

from collections.abc import Iterator

from torch import nn

from glassformer.decode.cancelling import raise_if_cancelled


def end_when_cancelled(*models: nn.Module) -> None:
    """Have every layer check first whether somebody still waits for what is computed."""
    modules = {layer for one in models for layer in (one, *layers_in(one))}
    for module in modules:
        module.register_forward_pre_hook(lambda layer, given: raise_if_cancelled())


def layers_in(model: nn.Module) -> Iterator[nn.Module]:
    """The layers of all stacks in a model."""
    for module in model.modules():
        if isinstance(module, nn.ModuleList):
            yield from module
