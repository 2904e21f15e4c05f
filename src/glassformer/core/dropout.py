"""Dropout of single elements and of whole layers (stochastic depth), in training only.

On a CPU most of dropout's time goes into random numbers, so here one 64-bit number serves eight
elements, one byte each. The share is then rounded to a multiple of 1/256.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors


class Dropout(nn.Module):
    """Set this share of the elements to zero and scale up the rest. Srivastava et al., 2014."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = checked_share(share)

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Drop elements at random in training; otherwise, the input as it is."""
        return dropout(x, self.share) if self.training else x

    def extra_repr(self) -> str:
        return f"{self.share}"


class StochasticDepth(nn.Module):
    """Skip a layer for this share of the rows, and scale up its output for the rest.

    Rows are skipped as a whole, in padded and in packed form. Huang et al., 2016.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = checked_share(share)

    def forward(self, x: Vectors, layout: Layout) -> Vectors:
        """What a layer adds, without the rows that skip it in training."""
        if not self.training or not self.share:
            return x
        rows = torch.rand(layout.rows, device=x.device) >= self.share
        scale = rows.to(x.dtype) / (1 - self.share)
        return x * (
            scale[layout.row_of, None] if layout.row_of is not None else scale[:, None, None]
        )

    def extra_repr(self) -> str:
        return f"{self.share}"


def dropout(x: Float[Tensor, "..."], share: float) -> Float[Tensor, "..."]:
    """Set this share of the elements to zero and scale up the rest, in any mode."""
    if not share:
        return x
    threshold = round(share * 256)
    if x.device.type != "cpu" or torch.compiler.is_compiling() or not 0 < threshold < 256:
        return F.dropout(x, share)
    words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
    noise = words.view(torch.uint8)[: x.numel()].view(x.shape)
    return x * ((noise >= threshold) * (256 / (256 - threshold))).to(x.dtype)


def checked_share(share: float) -> float:
    """The share, if it is in [0, 1)."""
    if not 0 <= share < 1:
        raise ValueError(f"dropout must be in [0, 1), got {share}")
    return share
