"""Residual: the connection around a sublayer, with a norm before it, after it, or both.

    pre       x + f(norm(x))              trains at any depth; the stack ends with a norm
    post      norm(x + f(x))              the original; needs warm-up
    sandwich  x + norm(f(norm(x)))        for very deep or half-precision stacks

Dropout and stochastic depth apply to the sublayer's output.
"""

from collections.abc import Callable

from torch import nn

from glassformer.core.dropout import Dropout, StochasticDepth
from glassformer.core.layout import Layout
from glassformer.core.norms import LayerNorm
from glassformer.core.shapes import Vectors
from glassformer.errors import unknown

ORDERS = ("pre", "post", "sandwich")


class Residual(nn.Module):
    """The residual connection around a sublayer, with its norms and dropout.

    Args:
        norm: Makes a norm of a given width.
        weight: Factor on the sublayer's output; 1/2 for a Conformer's feed-forward networks.
        depth_dropout: Share of the rows for which the sublayer is skipped in training.
    """

    def __init__(
        self,
        dim: int,
        *,
        order: str = "pre",
        norm: Callable[[int], nn.Module] = LayerNorm,
        dropout: float = 0.0,
        depth_dropout: float = 0.0,
        weight: float = 1.0,
    ) -> None:
        super().__init__()
        if order not in ORDERS:
            raise ValueError(unknown("order", order, ORDERS))
        self.order, self.weight = order, weight
        self.before = None if order == "post" else norm(dim)
        self.after = None if order == "pre" else norm(dim)
        self.dropout, self.depth_dropout = Dropout(dropout), StochasticDepth(depth_dropout)

    def forward(
        self, x: Vectors, sublayer: Callable[[Vectors], Vectors], layout: Layout
    ) -> Vectors:
        """The residual stream after a sublayer."""
        x = x + self.added(x, sublayer, layout)
        return self.after(x, layout) if self.order == "post" and self.after is not None else x

    def added(self, x: Vectors, sublayer: Callable[[Vectors], Vectors], layout: Layout) -> Vectors:
        """What the sublayer adds to the residual stream."""
        y = sublayer(x if self.before is None else self.before(x, layout))
        if self.order == "sandwich" and self.after is not None:
            y = self.after(y, layout)
        y = self.depth_dropout(self.dropout(y), layout)
        return y if self.weight == 1 else self.weight * y
