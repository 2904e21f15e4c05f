"""Initialisation: weights that let a stack of this order and depth train from the first step.

    every matrix     Xavier uniform: variance kept forwards and backwards
    pre, sandwich    what a sublayer adds last (LAST) shrinks by 1/sqrt(2 depth), so that the
                     residual stream does not grow with depth (as in GPT-2)
    post             values, outputs and feed-forward (BOUNDED) shrink by (8 depth)^(-1/4), in a
                     decoder by (12 depth)^(-1/4), so that early updates stay bounded (Wang et al.,
                     2022); a warm-up is still needed
    biases           zero

Convolutions, norms, embeddings and position tables begin as their own modules say.
"""

import math

import torch
from torch import nn

from glassformer.config import StackConfig

LAST = ("to_out", "narrow", "merge")
BOUNDED = ("to_v", "to_out", "widen", "narrow", "gate")


@torch.no_grad()
def initialise(stack: nn.Module, config: StackConfig, *, decoder: bool = False) -> None:
    """Set a stack's weights for its order and depth."""
    for name, layer in stack.named_modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight, gain(name, config, decoder))
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def gain(name: str, config: StackConfig, decoder: bool) -> float:
    """How much smaller than Xavier's this layer's matrix begins."""
    own = name.rpartition(".")[2]
    if config.order != "post":
        return 1 / math.sqrt(2 * config.depth) if own in LAST else 1.0
    return ((12 if decoder else 8) * config.depth) ** -0.25 if own in BOUNDED else 1.0
