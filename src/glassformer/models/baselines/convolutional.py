"""TCN: a temporal convolutional network, whose receptive field doubles with every layer.

    x + conv(relu(conv(norm(x))))        dilation 1, 2, 4, ... from layer to layer

Lea et al., 2017; Bai et al., 2018. It needs no positions: a convolution sees the order.
"""

from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import StackConfig
from glassformer.core.dropout import Dropout
from glassformer.core.layout import Layout, zero_padding
from glassformer.core.masks import Mask, everything
from glassformer.core.shapes import Vectors
from glassformer.models.baselines.rows import (
    in_rows,
    in_the_form_of,
    refuse_other_mask,
)
from glassformer.models.blocks.base import norm_of, residual_of


class TCN(nn.Module):
    """Reads a whole sequence through dilated convolutions.

    A `convolution.width` of 3 is usual here; the 31 of a Conformer has ten times the weights. A
    layer sees `2 dilation (width - 1)` positions around its own.
    """

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.dim, self.dropout = config.dim, Dropout(config.dropout)
        self.layers = nn.ModuleList(
            DilatedLayer(config, dilation=2**number) for number in range(config.depth)
        )
        self.norm = None if config.order == "post" else norm_of(config.norm, config.dim)

    def forward(self, x: Vectors, *, layout: Layout, mask: Mask = everything) -> Vectors:
        """A vector for each position, from the positions around it."""
        refuse_other_mask("a temporal convolutional network", mask, everything)
        if not layout.longest:
            return x
        rows, inside = self.dropout(in_rows(x, layout)), layout.as_padded()
        for layer in self.layers:
            rows = layer(rows, inside)
        rows = rows if self.norm is None else self.norm(rows, inside)
        return in_the_form_of(layout, rows)


class DilatedLayer(nn.Module):
    """Two convolutions of one dilation, and a residual around them."""

    def __init__(self, config: StackConfig, *, dilation: int) -> None:
        super().__init__()
        width, dim = config.convolution.width, config.dim
        margin = dilation * (width - 1) // 2
        self.first = nn.Conv1d(dim, dim, width, dilation=dilation, padding=margin)
        self.second = nn.Conv1d(dim, dim, width, dilation=dilation, padding=margin)
        self.residual = residual_of(config)

    def forward(self, x: Float[Tensor, "B T D"], layout: Layout) -> Float[Tensor, "B T D"]:
        """The vectors after this layer, in padded rows."""
        return self.residual(x, partial(self._convolutions, layout=layout), layout)

    def _convolutions(self, x: Float[Tensor, "B T D"], layout: Layout) -> Float[Tensor, "B T D"]:
        hidden = F.relu(self.first(zero_padding(x.mT, layout, axis=2)))  # (B, D, T)
        return self.second(zero_padding(hidden, layout, axis=2)).mT
