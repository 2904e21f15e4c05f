"""Feed-forward nets: what each position thinks by itself, with the same weights everywhere.

    relu, gelu, gelu-tanh, silu    W2 f(W1 x)
    swiglu                         W2 (silu(W1 x) * W3 x)        Shazeer, 2020
    convolution                    relu, written as 1x1 convolutions: the same maths

To add one, write a module from vectors to vectors and list it in FEEDFORWARDS and in
`config.FEEDFORWARD_NAMES`.
"""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.core.dropout import Dropout
from glassformer.core.shapes import Vectors


class FeedForward(nn.Module):
    """Widen, bend, narrow again: two layers with a curve between them.

    Args:
        hidden: The width in between.
        bend: The curve.
        dropout: Share of the hidden numbers dropped in training.
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        bend: Callable[[Tensor], Tensor] = F.relu,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.widen = nn.Linear(dim, hidden, bias=bias)
        self.narrow = nn.Linear(hidden, dim, bias=bias)
        self.dropout, self.bend = Dropout(dropout), bend

    def forward(self, x: Vectors) -> Vectors:
        return self.narrow(self.dropout(self.bend(self.widen(x))))


class SwiGLU(nn.Module):
    """A hidden layer whose every number is let through by a gate of its own."""

    def __init__(self, dim: int, hidden: int, *, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=bias)
        self.widen = nn.Linear(dim, hidden, bias=bias)
        self.narrow = nn.Linear(hidden, dim, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Vectors) -> Vectors:
        return self.narrow(self.dropout(F.silu(self.gate(x)) * self.widen(x)))


class PointwiseConvolution(nn.Module):
    """Two convolutions one position wide, which is what a feed-forward net is."""

    def __init__(self, dim: int, hidden: int, *, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.widen = nn.Conv1d(dim, hidden, 1, bias=bias)
        self.narrow = nn.Conv1d(hidden, dim, 1, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Vectors) -> Vectors:
        if not x.numel():  # torch convolves no empty rows
            return x
        channels = x.mT  # (B, D, T) or (D, N)
        return self.narrow(self.dropout(F.relu(self.widen(channels)))).mT


FEEDFORWARDS: dict[str, Callable[..., nn.Module]] = {
    "relu": FeedForward,
    "gelu": partial(FeedForward, bend=F.gelu),
    "gelu-tanh": partial(FeedForward, bend=partial(F.gelu, approximate="tanh")),
    "silu": partial(FeedForward, bend=F.silu),
    "swiglu": SwiGLU,
    "convolution": PointwiseConvolution,
}
