"""Feed-forward networks: applied to each position separately, with the same weights.

    relu, relu2, gelu, gelu-tanh, silu    W2 f(W1 x)
    swiglu, geglu, geglu-tanh             W2 (f(W1 x) * W3 x)    Shazeer, 2020
    convolution                           relu, written as 1x1 convolutions: the same maths

f is the activation in the name: silu for swiglu, gelu for geglu; relu2 is relu squared (So et al.,
"Primer", 2021). T5 v1.1 and Gemma use geglu-tanh.

To add one, write a module from vectors to vectors and list it in FEEDFORWARDS and in
`config.FEEDFORWARD_NAMES`.
"""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.core.dropout import Dropout
from glassformer.core.gelu import gelu
from glassformer.core.shapes import Vectors

gelu_tanh = partial(F.gelu, approximate="tanh")


def relu_squared(x: Tensor) -> Tensor:
    """max(0, x)²."""
    return F.relu(x).square()


class FeedForward(nn.Module):
    """Two linear layers with an activation between them.

    Args:
        hidden: Width of the hidden layer.
        activation: Applied to the hidden layer.
        dropout: Share of the hidden elements dropped in training.
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        activation: Callable[[Tensor], Tensor] = F.relu,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.widen = nn.Linear(dim, hidden, bias=bias)
        self.narrow = nn.Linear(hidden, dim, bias=bias)
        self.dropout, self.activation = Dropout(dropout), activation

    def forward(self, x: Vectors) -> Vectors:
        """narrow(activation(widen(x))), for each vector alone."""
        return self.narrow(self.dropout(self.activation(self.widen(x))))


class GatedFeedForward(nn.Module):
    """A feed-forward network whose hidden elements are each multiplied by a gate.

    Args:
        hidden: Width of the hidden layer.
        activation: Applied to the gate.
        dropout: Share of the hidden elements dropped in training.
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        activation: Callable[[Tensor], Tensor] = F.silu,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=bias)
        self.widen = nn.Linear(dim, hidden, bias=bias)
        self.narrow = nn.Linear(hidden, dim, bias=bias)
        self.dropout, self.activation = Dropout(dropout), activation

    def forward(self, x: Vectors) -> Vectors:
        """narrow(activation(gate(x)) * widen(x)), for each vector alone."""
        return self.narrow(self.dropout(self.activation(self.gate(x)) * self.widen(x)))


class PointwiseConvolution(nn.Module):
    """The feed-forward network with relu, written as two convolutions of kernel size 1."""

    def __init__(self, dim: int, hidden: int, *, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.widen = nn.Conv1d(dim, hidden, 1, bias=bias)
        self.narrow = nn.Conv1d(hidden, dim, 1, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Vectors) -> Vectors:
        """narrow(relu(widen(x))), for each vector alone."""
        if not x.numel():  # torch refuses to convolve empty rows
            return x
        channels = x.mT  # (B, D, T) or (D, N)
        return self.narrow(self.dropout(F.relu(self.widen(channels)))).mT


FEEDFORWARDS: dict[str, Callable[..., nn.Module]] = {
    "relu": FeedForward,
    "relu2": partial(FeedForward, activation=relu_squared),
    "gelu": partial(FeedForward, activation=gelu),
    "gelu-tanh": partial(FeedForward, activation=gelu_tanh),
    "silu": partial(FeedForward, activation=F.silu),
    "swiglu": GatedFeedForward,
    "geglu": partial(GatedFeedForward, activation=gelu),
    "geglu-tanh": partial(GatedFeedForward, activation=gelu_tanh),
    "convolution": PointwiseConvolution,
}
