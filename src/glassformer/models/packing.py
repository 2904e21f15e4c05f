"""Twins of a model for a CPU: its weights in the order in which the fast kernels read them.

Prepacked weights make products with few rows, as in a step of decoding, 1.2 to 2 times as fast
where layers are some hundred wide, and no faster where they are small. The twin shares everything
else with its model, but not changes made to weights later: make another one then. It answers
without gradients.
"""

import copy
from functools import cached_property
from typing import TypeVar, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.int8 import SMALLEST, Int8Linear
from glassformer.core.prepacked import WIDE, can_prepack, prepacked, prepacked_product
from glassformer.models.frontends import Tokens
from glassformer.models.fused_encoder import with_fused_encoder
from glassformer.models.transcriber import Transcriber
from glassformer.models.transformer import Classifier, LanguageModel, Transformer

Writes = Transformer | LanguageModel | Transcriber
Model = TypeVar("Model", bound=Writes)


class PackedLinear(nn.Linear):
    """A linear layer that has its weight a second time, prepacked when it is needed."""

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None = None) -> None:
        nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        self.register_parameter("weight", weight)
        self.register_parameter("bias", bias)

    @cached_property
    def prepacked(self) -> Tensor:
        """The weight as the kernel reads it."""
        return prepacked(self.weight.detach())

    def __deepcopy__(self, memo: dict[int, object]) -> "PackedLinear":
        """Shared by twins: nothing in it ever changes, and what is prepacked cannot be copied."""
        return self

    def forward(self, x: Float[Tensor, "*tokens inside"]) -> Float[Tensor, "*tokens out"]:
        """The product with the prepacked weight; under autocast, with the usual one."""
        if torch.is_autocast_enabled("cpu"):  # the layout is one for fp32
            return super().forward(x)
        return prepacked_product(x, self.prepacked, self.bias)


def packed_twin(model: Model) -> Model:
    """The same model with prepacked weights; the model itself where they cannot be."""
    if not all(can_prepack(weight) for weight in model.parameters()):
        return model
    return cast(Model, _twin(model, PackedLinear))


def int8_twin(model: nn.Module) -> nn.Module:
    """The same model with linear layers that compute in int8, but for small ones."""
    return _twin(model, Int8Linear)


def for_inference(model: nn.Module) -> nn.Module:
    """What to predict with: a twin that is faster, for weights that will not change any more."""
    if isinstance(model, Classifier):
        return with_fused_encoder(model)
    if not isinstance(model, Writes):
        return model
    width = (model.tokens if isinstance(model, LanguageModel) else model.frontend).dim
    twin: Writes = model if width < WIDE else packed_twin(model)
    if isinstance(twin, LanguageModel):
        twin = copy.copy(twin)
        twin.frozen = True
    return twin


def written_tokens(model: Writes) -> Tokens | None:
    """The embedding of what a model writes; None for CTC alone."""
    return model.tokens if isinstance(model, LanguageModel) else model.target


def _twin(module: nn.Module, kind: type[PackedLinear] | type[Int8Linear]) -> nn.Module:
    """A copy of the tree of modules with linear layers of another kind."""
    if isinstance(module, PackedLinear | Int8Linear):
        return module
    if isinstance(module, nn.Linear):
        small = kind is Int8Linear and min(module.weight.shape) < SMALLEST
        weights = cast(tuple[nn.Parameter, nn.Parameter | None], (module.weight, module.bias))
        return module if small else kind(*weights)
    twin = copy.copy(module)
    twin._modules = {name: child and _twin(child, kind) for name, child in module._modules.items()}
    written = written_tokens(module) if isinstance(module, Writes) else None
    if isinstance(twin, Writes) and twin.unembed is None and written is not None:
        twin.unembed = kind(cast(nn.Parameter, written.table.weight))  # instead of the table itself
    return twin
