"""Pooling: one vector for a sequence, from its real tokens only, never from padding.

    mean        the average                       the usual choice for classifiers
    max         the maximum of each channel
    first       the first token's vector          trained to summarise the rest
    attention   an average with learned weights

An empty row gives zeros. To add a pool, write a module called as pool(x, layout), list it here and
in `config.POOL_NAMES`.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.core.layout import Layout, pad
from glassformer.core.shapes import Vectors


class MeanPool(nn.Module):
    """The average of a row's vectors."""

    def __init__(self, dim: int) -> None:
        super().__init__()

    def forward(self, x: Vectors, layout: Layout) -> Float[Tensor, "B D"]:
        """The average of each row."""
        if layout.is_full and layout.longest:
            return x.mean(1)
        x, real = in_rows(x, layout)
        return (x * real).sum(1) / real.sum(1).clamp(min=1)


class MaxPool(nn.Module):
    """The maximum of each channel."""

    def __init__(self, dim: int) -> None:
        super().__init__()

    def forward(self, x: Vectors, layout: Layout) -> Float[Tensor, "B D"]:
        """The maximum of each row, channel by channel."""
        x, real = in_rows(x, layout)
        seen = real.any(1)
        lowest = torch.finfo(x.dtype).min
        return x.masked_fill(~real, lowest).amax(1).masked_fill(~seen, 0.0)


class FirstPool(nn.Module):
    """The first token's vector."""

    def __init__(self, dim: int) -> None:
        super().__init__()

    def forward(self, x: Vectors, layout: Layout) -> Float[Tensor, "B D"]:
        """The first vector of each row."""
        x, real = in_rows(x, layout)
        return x[:, 0] * real[:, 0]


class AttentionPool(nn.Module):
    """An average weighted by a learned query."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.to_score = nn.Linear(dim, 1, bias=False)

    def forward(self, x: Vectors, layout: Layout) -> Float[Tensor, "B D"]:
        """The weighted average of each row."""
        x, real = in_rows(x, layout)
        return (self.weigh(x, real) * x).sum(1)

    def weigh(
        self, x: Float[Tensor, "B positions D"], real: Bool[Tensor, "B positions 1"]
    ) -> Float[Tensor, "B positions 1"]:
        """The weight of each vector of padded rows."""
        exact = torch.promote_types(x.dtype, torch.float32)
        scores = self.to_score(x).to(exact).masked_fill(~real, torch.finfo(exact).min)
        return scores.softmax(1).masked_fill(~real, 0.0).to(x.dtype)


def in_rows(
    x: Vectors, layout: Layout
) -> tuple[Float[Tensor, "B positions D"], Bool[Tensor, "B positions 1"]]:
    """Padded rows, at least one position wide, and where they hold real tokens."""
    rows, real = pad(x, layout) if layout.is_packed else x, layout.as_padded().real[..., None]
    if layout.longest:
        return rows, real
    return F.pad(rows, (0, 0, 0, 1)), F.pad(real, (0, 0, 0, 1))


POOLS: dict[str, type[nn.Module]] = {
    "mean": MeanPool,
    "max": MaxPool,
    "first": FirstPool,
    "attention": AttentionPool,
}
