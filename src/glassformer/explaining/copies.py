"""Copies of a model that share its weights and run in eager mode, to be looked into or cut.

The model itself is never touched: another thread may be serving it. What only makes it faster is
left out of a copy: compiled code, weights in packed layouts, fused steps of decoding.
"""

import copy
from itertools import chain
from typing import TypeVar, cast

from torch import Tensor, nn

from glassformer.models.packing import PackedLinear
from glassformer.models.stacks import Stack
from glassformer.models.transformer import LanguageModel

Model = TypeVar("Model", bound=nn.Module)


def eager_copy(model: Model) -> Model:
    """A copy of the modules that shares all parameters and buffers."""
    model = cast(Model, getattr(model, "_orig_mod", model))  # what torch.compile wraps
    shared = chain(model.parameters(), model.buffers())
    twin = copy.deepcopy(model, {id(tensor): tensor for tensor in shared})
    for module in twin.modules():
        if isinstance(module, LanguageModel):
            module.frozen = False  # so that its steps are those of its layers
        if isinstance(module, Stack):
            module.recomputes = False
        for name, child in module.named_children():
            if isinstance(child, PackedLinear):
                setattr(module, name, linear_of(child.weight, child.bias))
    return twin


def linear_of(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A linear layer with these parameters."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    linear.register_parameter("weight", cast(nn.Parameter, weight))
    linear.register_parameter("bias", cast(nn.Parameter | None, bias))
    return linear
