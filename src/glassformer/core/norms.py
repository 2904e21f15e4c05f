"""Norms: keep vectors at a scale that training can work with.

`layer` and `rms` normalise each vector alone. `batch` normalises across the batch, counting real
tokens only, never padding. To add one, write a module called as norm(x, layout)
and list it in NORMS and in `config.NORM_NAMES`.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.core.layout import Layout, zero_padding
from glassformer.core.shapes import ByHead, Vectors


class LayerNorm(nn.Module):
    """Mean 0 and variance 1 within each vector, then a learned scale and shift. Ba et al., 2016."""

    def __init__(self, dim: int, *, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim)) if bias else None
        self.eps = eps

    def forward(self, x: Vectors, layout: Layout | None = None) -> Vectors:
        """Normalise each vector alone; the layout has no effect."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """Root mean square 1 within each vector, then a learned scale. Zhang and Sennrich, 2019."""

    def __init__(self, dim: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Vectors | ByHead, layout: Layout | None = None) -> Vectors | ByHead:
        """Normalise each vector alone; the layout has no effect."""
        # The fused kernel needs one dtype for both.
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


class BatchNorm(nn.Module):
    """Mean 0 and variance 1 of each channel over the real tokens of a batch. Ioffe, Szegedy, 2015.

    Outside training it uses the running averages, so other rows matter in training only.
    """

    running_mean: Float[Tensor, " D"]
    running_variance: Float[Tensor, " D"]

    def __init__(
        self, dim: int, *, eps: float = 1e-5, bias: bool = True, momentum: float = 0.1
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim)) if bias else None
        self.register_buffer("running_mean", torch.zeros(dim))
        self.register_buffer("running_variance", torch.ones(dim))
        self.eps, self.momentum = eps, momentum

    def forward(self, x: Vectors, layout: Layout) -> Vectors:
        """Normalise each channel over the real tokens; padding becomes what zeros become."""
        x, real = zero_padding(x, layout), layout.real.expand(x.shape[:-1])[..., None]
        mean, variance = self.running_mean, self.running_variance
        if self.training:
            mean, variance = self._statistics(x, real)
        y = (x - mean) * torch.rsqrt(variance + self.eps) * self.weight
        return (y if self.bias is None else y + self.bias).to(x.dtype)

    def _statistics(
        self, x: Vectors, real: Bool[Tensor, "*tokens 1"]
    ) -> tuple[Float[Tensor, " D"], Float[Tensor, " D"]]:
        """Mean and variance of the real tokens; updates the running averages without a sync."""
        axes, counts = tuple(range(x.ndim - 1)), real.to(torch.float32)
        count = counts.sum().clamp(min=1)
        mean = (x * counts).sum(axes) / count
        variance = ((x - mean).square() * counts).sum(axes) / count
        with torch.no_grad():
            unbiased = variance * count / (count - 1).clamp(min=1)
            for running, new in ((self.running_mean, mean), (self.running_variance, unbiased)):
                weight = self.momentum * real.any().to(running)  # no update without tokens
                running.lerp_(new.to(running.dtype), weight)
        return mean, variance


NORMS: dict[str, type[LayerNorm] | type[RMSNorm] | type[BatchNorm]] = {
    "layer": LayerNorm,
    "rms": RMSNorm,
    "batch": BatchNorm,
}
