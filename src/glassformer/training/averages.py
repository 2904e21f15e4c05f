"""Averages of weights, which usually score better than the weights of the last step.

EMA    after every step, average ← decay · average + (1 - decay) · weights
mean   of the weights of several checkpoints
"""

from collections.abc import Iterable

import torch

from glassformer.training.fsdp import local, sharded_like
from glassformer.training.weights import Weights


class MovingAverage:
    """An exponential moving average; it decays faster early on, to forget the initial weights."""

    def __init__(self, decay: float, weights: Weights) -> None:
        self.decay = decay
        self.weights = {name: tensor.clone() for name, tensor in weights.items()}

    @torch.no_grad()
    def update(self, weights: Weights, step: int) -> None:
        """Include the weights of one step."""
        decay = min(self.decay, (1 + step) / (10 + step))
        numbers = {n: tensor for n, tensor in self.weights.items() if tensor.is_floating_point()}
        averages, latest = map(local, numbers.values()), (local(weights[n]) for n in numbers)
        torch._foreach_lerp_(list(averages), list(latest), 1 - decay)
        for name in self.weights.keys() - numbers.keys():
            self.weights[name].copy_(weights[name])

    @torch.no_grad()
    def load(self, weights: Weights) -> None:
        """Restore a saved average."""
        for name, tensor in self.weights.items():
            local(tensor).copy_(local(sharded_like(tensor, weights[name])))


def mean(many: Iterable[Weights]) -> Weights:
    """The mean of several sets of weights; integer tensors are those of the first set."""
    first, *others = many
    return {
        name: torch.stack([tensor, *(weights[name] for weights in others)]).mean(0)
        if tensor.is_floating_point()
        else tensor
        for name, tensor in first.items()
    }
