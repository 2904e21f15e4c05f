"""Initialisation: weights that let a stack of any order and depth train from the first step.

    every matrix    Xavier uniform: keeps the variance, forwards and backwards
    LAST            these projections are scaled by 1/sqrt(2 depth), so that a block starts close to
                    the identity and the residual stream does not grow with depth
    biases          zero

The rule is the same for `pre`, `post` and `sandwich`: 6 + 6 layers in `post` order learn with it as
they do in `pre`, and much more slowly or not at all with the alternatives tried (docs/dev/log.md).
`post` still needs a warm-up. Convolutions (including feed-forward networks written as such), norms,
embeddings and position tables are initialised by their own modules.
"""

import math

import torch
from torch import nn

LAST = ("to_out", "narrow", "merge")


@torch.no_grad()
def initialise(stack: nn.Module, depth: int) -> None:
    """Initialise a stack's weights for its depth."""
    for name, layer in stack.named_modules():
        if isinstance(layer, nn.Linear):
            last = name.rpartition(".")[2] in LAST
            nn.init.xavier_uniform_(layer.weight, 1 / math.sqrt(2 * depth) if last else 1.0)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
