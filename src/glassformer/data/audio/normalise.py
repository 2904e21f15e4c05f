"""Mean and variance normalisation: features of mean 0 and variance 1 in every bin.

`normalise_rows` takes the statistics of each recording, which removes its volume and microphone;
`normalise` takes given ones, such as those of all training data, collected by `Moments`. Padding
stays 0, and so does a bin that never changes.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.layout import Layout, zero_padding

SMALLEST = 1e-5  # standard deviation


class Moments:
    """The mean and the standard deviation of every bin, over recordings seen one by one."""

    def __init__(self, bins: int) -> None:
        self.frames = 0
        self.sums = torch.zeros(2, bins, dtype=torch.float64)  # of values and of their squares

    def add(self, features: Float[Tensor, "F M"]) -> None:
        values = features.double().cpu()
        self.frames += len(values)
        self.sums += torch.stack([values.sum(0), values.square().sum(0)])

    @property
    def mean(self) -> Float[Tensor, " M"]:
        return (self.sums[0] / max(1, self.frames)).float()

    @property
    def deviation(self) -> Float[Tensor, " M"]:
        means, squares = self.sums / max(1, self.frames)
        return (squares - means.square()).clamp_min(0).sqrt().clamp_min(SMALLEST).float()


def normalise(
    features: Float[Tensor, "B F M"],
    lengths: Sequence[int],
    mean: Float[Tensor, " M"],
    deviation: Float[Tensor, " M"],
) -> Float[Tensor, "B F M"]:
    """Features by given statistics."""
    layout = Layout.padded(lengths, longest=features.shape[1], device=features.device)
    return zero_padding((features - mean) / deviation, layout)


def normalise_rows(
    features: Float[Tensor, "B F M"], lengths: Sequence[int]
) -> Float[Tensor, "B F M"]:
    """Each row by the statistics of its own frames."""
    layout = Layout.padded(lengths, longest=features.shape[1], device=features.device)
    frames = layout.lengths.clamp_min(1)[:, None, None]
    mean = zero_padding(features, layout).sum(1, keepdim=True) / frames  # (B, 1, M)
    centred = zero_padding(features - mean, layout)
    deviation = (centred.square().sum(1, keepdim=True) / frames).sqrt()
    return centred / deviation.clamp_min(SMALLEST)
