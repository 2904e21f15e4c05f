"""Initialisation: weights that let a stack of this order and depth train from the first step.

every matrix          Xavier uniform: variance kept forwards and backwards
pre, sandwich         what a sublayer adds last (`to_out`, `narrow`) shrinks by 1/sqrt(2 depth),
                      so that the residual stream does not grow with depth (as in GPT-2)
post                  values, outputs and feed-forward shrink by (8 depth)^(-1/4), and by
                      (12 depth)^(-1/4) in a decoder, so that early updates stay bounded
                      (DeepNet, Wang et al., 2022); still use a warm-up
biases                zero
embeddings            normal, standard deviation 1/sqrt(width)
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from glassformer.config import StackConfig

LAST = ("to_out", "narrow")
BOUNDED = ("to_v", "to_out", "widen", "narrow", "gate")


@torch.no_grad()
def initialise(stack: nn.Module, config: StackConfig, *, decoder: bool = False) -> None:
    """Set a stack's weights for its order and depth."""
    for name, matrix in matrices(stack):
        nn.init.xavier_uniform_(matrix.flatten(1), gain=gain(name, config, decoder))
    for name, weight in stack.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(weight)


def gain(name: str, config: StackConfig, decoder: bool) -> float:
    """How much smaller than Xavier's this matrix begins."""
    own = name.rsplit(".", 2)[-2]
    if config.order != "post":
        return 1 / math.sqrt(2 * config.depth) if own in LAST else 1.0
    return ((12 if decoder else 8) * config.depth) ** -0.25 if own in BOUNDED else 1.0


def matrices(stack: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The weights of linear layers and convolutions, by name."""
    for name, module in stack.named_modules():
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
            yield f"{name}.weight", module.weight
