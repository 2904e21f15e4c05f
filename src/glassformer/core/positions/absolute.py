"""Absolute positions: a vector for each position, added to the input."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.core.positions.base import Position
from glassformer.core.shapes import Vectors


class Learned(Position):
    """A vector for every position, learned like a word embedding. Gehring et al., 2017."""

    def __init__(self, dim: int, heads: int, max_length: int, *, width: int | None = None) -> None:
        super().__init__(dim, heads, max_length, width=width)
        self.table = nn.Embedding(max_length, dim)
        nn.init.normal_(self.table.weight, std=0.02)

    def embed(self, x: Vectors, layout: Layout) -> Vectors:
        if not layout.fits(self.max_length):
            raise ValueError(
                f"positions up to {int(layout.ends.max()) - 1} are needed, but the learned "
                f"table has only {self.max_length}; shorten the input, raise max_length and train "
                f"again, or choose a scheme that extends (rotary, alibi, sinusoidal)"
            )
        # Padding may lie beyond the table; it gets the last entry.
        return x + self.table(layout.positions.clamp(max=self.max_length - 1))


class Sinusoidal(Position):
    """Sines and cosines of many wavelengths. Vaswani et al., 2017.

    p[i, 2j] = sin(i / 10000^(2j/D)) and p[i, 2j+1] = cos(i / 10000^(2j/D)). A shift by δ rotates
    each (sine, cosine) pair by an angle that depends only on δ and j.
    """

    def embed(self, x: Vectors, layout: Layout) -> Vectors:
        return x + waves(layout.positions, self.dim).to(x.dtype)


def waves(at: Int[Tensor, "*at"], channels: int) -> Float[Tensor, "*at channels"]:
    """The sinusoidal encoding of these positions, in fp32."""
    speed = frequencies(channels, at.device).to(at.device, torch.float32)
    angle = at[..., None] * speed  # (..., channels / 2, rounded up)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[..., :channels]


def frequencies(
    channels: int, device: torch.device, base: float = 10_000.0
) -> Float[Tensor, " half"]:
    """One for each pair of channels, falling geometrically from 1 to nearly 1 / base; in float64.

    An exponential in float32 is off by several units in the last place, and so is the angle far
    along a sequence. MPS has no float64, so there they are computed on the CPU.
    """
    device = torch.device("cpu") if device.type == "mps" else device
    pairs = torch.arange(0, channels, 2, device=device, dtype=torch.float64)
    return torch.exp(pairs * (-math.log(base) / channels))
