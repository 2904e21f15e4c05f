"""Initialisation: weights that let a stack of any order and this depth train from the first step.

    every matrix    Xavier uniform: variance kept forwards and backwards
    LAST            the projections named there shrink by 1/sqrt(2 depth), so that a block begins
                    close to doing nothing and the residual stream does not grow with depth
    biases          zero

The rule is the same before, after and on both sides: 6 + 6 layers in `post` order learn with it as
they do in `pre`, and much more slowly or not at all with the others that were tried (docs/log.md).
`post` still wants a warm-up. Convolutions (feed-forward nets written as such, too), norms,
embeddings and position tables begin as their own modules say.
"""

import math

import torch
from torch import nn

LAST = ("to_out", "narrow", "merge")


@torch.no_grad()
def initialise(stack: nn.Module, depth: int) -> None:
    """Set a stack's weights for its depth."""
    for name, layer in stack.named_modules():
        if isinstance(layer, nn.Linear):
            last = name.rpartition(".")[2] in LAST
            nn.init.xavier_uniform_(layer.weight, 1 / math.sqrt(2 * depth) if last else 1.0)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
