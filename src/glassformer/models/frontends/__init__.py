"""Frontends: from the samples of a batch to vectors and their layout.

    tokens        a vector for every token                                Tokens
    ngrams        and one for every n-gram that ends in it                NgramTokens
    subsampling   mel features, by default a quarter as many vectors      Subsampling
    conv1d        the same by convolutions over time alone                TimeSubsampling
    resnet        mel features through a small residual network           MelResNet
    patches       an image cut into squares                               Patches

The three for mel features are in `mel`. The members of an ensemble that read words have a frontend
that no name gives: a vector for every word and phrase, where it ends (`words`).

A custom one (lips, signs, sensors) is any module that is called like these and has a `dim`. It
can be passed to a model directly; to give it a name as well, list it in FRONTENDS and in
`config.FRONTEND_NAMES`, and build it in `models.build.build_frontend`.

>>> import torch
>>> from torch import nn
>>> class Sensors(nn.Module):
...     def __init__(self, channels: int, dim: int) -> None:
...         super().__init__()
...         self.dim, self.to_vector = dim, nn.Linear(channels, dim)
...
...     def forward(self, samples, layout):
...         return self.to_vector(samples), layout
>>> vectors, layout = Sensors(3, 8)(torch.zeros(2, 5, 3), Layout.padded([5, 4]))
>>> vectors.shape
torch.Size([2, 5, 8])
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors
from glassformer.models.frontends.mel import MelResNet, Subsampling, TimeSubsampling
from glassformer.models.frontends.ngrams import NgramTokens
from glassformer.models.frontends.patches import Patches
from glassformer.models.frontends.tokens import Tokens

__all__ = [
    "FRONTENDS",
    "Frontend",
    "MelResNet",
    "NgramTokens",
    "Patches",
    "Subsampling",
    "TimeSubsampling",
    "Tokens",
]


@runtime_checkable
class Frontend(Protocol):
    """What a model needs from its frontend: a width, and vectors with their layout.

    Samples are padded (B, ...) or packed (N, ...), as their layout says, and the vectors have the
    same form. A frontend that shortens a sequence returns the layout of the shorter one, and must
    not let padding affect the result.
    """

    dim: int

    def __call__(self, samples: Tensor, layout: Layout) -> tuple[Vectors, Layout]: ...


FRONTENDS: dict[str, Callable[..., Frontend]] = {
    "tokens": Tokens,
    "ngrams": NgramTokens,
    "subsampling": Subsampling,
    "conv1d": TimeSubsampling,
    "resnet": MelResNet,
    "patches": Patches,
}
