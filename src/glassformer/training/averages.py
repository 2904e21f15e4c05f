"""Averages of weights: smoother than the last step's, and usually better.

EMA    after every step, average ← decay · average + (1 - decay) · weights
mean   of the weights of several checkpoints
"""

from collections.abc import Iterable

import torch

from glassformer.training.fsdp import dealt_as, local
from glassformer.training.weights import Weights


class MovingAverage:
    """An exponential average; early on it forgets faster, so that it is not held by the start."""

    def __init__(self, decay: float, weights: Weights) -> None:
        self.decay = decay
        self.weights = {name: tensor.clone() for name, tensor in weights.items()}

    @torch.no_grad()
    def update(self, weights: Weights, step: int) -> None:
        """Take one step's weights in."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, tensor in self.weights.items():
            if tensor.is_floating_point():
                tensor.lerp_(weights[name], 1 - decay)
            else:
                tensor.copy_(weights[name])

    @torch.no_grad()
    def put(self, weights: Weights) -> None:
        """Go on from an average that was saved."""
        for name, tensor in self.weights.items():
            local(tensor).copy_(local(dealt_as(tensor, weights[name])))


def mean(many: Iterable[Weights]) -> Weights:
    """The mean of several sets of the same weights; counters are the first one's."""
    first, *others = many
    return {
        name: torch.stack([tensor, *(weights[name] for weights in others)]).mean(0)
        if tensor.is_floating_point()
        else tensor
        for name, tensor in first.items()
    }
