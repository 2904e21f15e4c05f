"""Convolutions along the sequence, for blocks that look at neighbours as well as at everyone.

    convolve           a depthwise convolution that stays within each row, padded or packed
    ConvolutionModule  the Conformer's: neighbours, after a gate             Gulati et al., 2020
    ConvolutionalGate  the Branchformer's cgMLP: neighbours are the gate     Peng et al., 2022

A convolution is centred, so it looks ahead: blocks made of these belong to encoders, and say so
through `check_settings` and `check_call`. A convolution one position wide is a linear layer, and
written as one.
"""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import nn

from glassformer.config import StackConfig, require
from glassformer.core.caches import Cache, Memory
from glassformer.core.dropout import Dropout
from glassformer.core.layout import Layout, pack, pad, zero_padding
from glassformer.core.masks import Mask
from glassformer.core.norms import LayerNorm
from glassformer.core.shapes import Vectors
from glassformer.models.blocks.base import norm_of


def depthwise(channels: int, width: int) -> nn.Conv1d:
    """A convolution that keeps channels apart and lengths as they are."""
    return nn.Conv1d(channels, channels, width, padding=width // 2, groups=channels)


def convolve(convolution: nn.Conv1d, x: Vectors, layout: Layout) -> Vectors:
    """Slide along each row by itself: before its first token and after its last stand zeros."""
    if not x.numel():  # rows of no tokens; torch refuses a kernel wider than its padded input
        return x
    if layout.is_packed:
        return pack(convolution(pad(x, layout).mT).mT, layout)
    return convolution(zero_padding(x, layout).mT).mT


class ConvolutionModule(nn.Module):
    """out(silu(norm(convolve(glu(widen(x)))))): what the neighbourhood says, through a gate.

    The paper's norm before it and dropout after it are those of the residual around it.

    Args:
        width: How many neighbours each position hears, itself included.
        norm: Makes the norm of the convolution's answers. The paper has `BatchNorm`.
    """

    def __init__(
        self, dim: int, *, width: int = 31, norm: Callable[[int], nn.Module] = LayerNorm
    ) -> None:
        super().__init__()
        self.widen = nn.Linear(dim, 2 * dim)
        self.depthwise = depthwise(dim, width)
        self.norm = norm(dim)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x: Vectors, layout: Layout) -> Vectors:
        x = convolve(self.depthwise, F.glu(self.widen(x)), layout)
        return self.to_out(F.silu(self.norm(x, layout)))


class ConvolutionalGate(nn.Module):
    """narrow(a * convolve(norm(b))), where a and b are the halves of gelu(widen(x)).

    At first the gate is open, whatever the neighbours say: its convolution starts near zero with a
    bias of one, as in gMLP (Liu et al., 2021).

    Args:
        hidden: Width of both halves together.
        width: How many neighbours each position hears, itself included.
        norm: Makes the norm of the half that gates.
        dropout: Share of the gated numbers dropped in training.
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        width: int = 31,
        norm: Callable[[int], nn.Module] = LayerNorm,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        require(
            hidden % 2 == 0,
            f"feedforward.hidden must be even, so that one half can gate the other; got {hidden}",
        )
        self.widen = nn.Linear(dim, hidden)
        self.norm = norm(hidden // 2)
        self.depthwise = depthwise(hidden // 2, width)
        self.narrow = nn.Linear(hidden // 2, dim)
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.depthwise.weight, std=1e-6)
        nn.init.ones_(self.depthwise.bias)  # type: ignore[arg-type]  # it has one

    def forward(self, x: Vectors, layout: Layout) -> Vectors:
        said, heard = F.gelu(self.widen(x)).chunk(2, dim=-1)
        gate = convolve(self.depthwise, self.norm(heard, layout), layout)
        return self.narrow(self.dropout(said * gate))


def gate_of(config: StackConfig) -> ConvolutionalGate:
    """The convolutional gate a stack's settings ask for, as wide as its feed-forward nets."""
    return ConvolutionalGate(
        config.dim,
        config.hidden,
        width=config.convolution.width,
        norm=partial(norm_of, config.convolution.norm),
        dropout=config.feedforward.dropout,
    )


def check_settings(block: str, config: StackConfig, memory_dim: int | None) -> None:
    """Refuse a place in a decoder, and an order of norms that no paper gives these blocks."""
    if memory_dim is not None:
        raise ValueError(
            f"a {block} is an encoder's block and looks at no memory, but got a memory "
            f"{memory_dim} wide; use a TransformerBlock in the decoder"
        )
    require(
        config.order == "pre",
        f"a {block} has its norms before its parts and one at its end, as in its paper; "
        f"got order {config.order!r}, use 'pre'",
    )


def check_call(
    block: str, width: int, mask: Mask, cache: Cache | None, memory: Memory | None
) -> None:
    """Refuse what a convolution cannot keep to: a past without a future, a mask that hides more."""
    if cache is not None:
        raise ValueError(
            f"a {block} takes no cache, for its convolutions look ahead: a new token changes what "
            f"was said of those before it; give it the whole sequence"
        )
    if memory is not None:
        raise ValueError(f"a {block} looks at no memory; use a decoder's block")
    steps, band = width // 2, mask.band
    if band is None or any(side is not None and side < steps for side in band):
        raise ValueError(
            f"a convolution {width} wide looks {steps} steps to each side, which {mask} does not "
            f"allow everywhere; use `everything`, or a window of {steps + 1} or more"
        )
