"""Convolutions along the sequence, for blocks that combine them with attention.

    convolve           a depthwise convolution that stays within each row, padded or packed
    ConvolutionModule  the Conformer's: a convolution after a gate           Gulati et al., 2020
    ConvolutionalGate  the Branchformer's cgMLP: a convolution as the gate   Peng et al., 2022

A convolution is centred, so it looks ahead: blocks made of these belong to encoders, as
`check_settings` and `check_call` ensure. Under a mask of chunks it looks ahead to the end of a
chunk only, as if the row ended there. Li et al., "Dynamic Chunk Convolution", 2023. A convolution
of width 1 is a linear layer, and written as one.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import StackConfig, require
from glassformer.core.caches import Cache, ChunkCache, Memory
from glassformer.core.dropout import Dropout
from glassformer.core.layout import Layout, pack, pad, zero_padding
from glassformer.core.masks import Chunks, Mask, everything
from glassformer.core.norms import LayerNorm
from glassformer.core.shapes import Vectors
from glassformer.models.blocks.base import norm_of


def depthwise(channels: int, width: int) -> nn.Conv1d:
    """A depthwise convolution that keeps the length."""
    return nn.Conv1d(channels, channels, width, padding=width // 2, groups=channels)


def convolve(
    convolution: nn.Conv1d,
    x: Vectors,
    layout: Layout,
    mask: Mask = everything,
    cache: Cache | None = None,
) -> Vectors:
    """Convolve each row separately, with zeros before its first token and after its last.

    Args:
        mask: Of chunks, behind each of which zeros follow too; or any mask that is wide enough.
        cache: Holds what stands before a single chunk.
    """
    if not x.numel():  # empty rows; torch refuses a kernel wider than its padded input
        return x
    if layout.is_packed:
        return pack(convolve(convolution, pad(x, layout), layout.as_padded(), mask), layout)
    channels = zero_padding(x, layout).mT  # (B, D, T)
    if isinstance(cache, ChunkCache):
        return _after(convolution, channels, cache).mT
    if isinstance(mask, Chunks):
        return _by_chunk(convolution, channels, mask.size).mT
    return convolution(channels).mT


def _by_chunk(
    convolution: nn.Conv1d, x: Float[Tensor, "B D T"], size: int
) -> Float[Tensor, "B D T"]:
    """Each chunk with what stands before it, and zeros behind it."""
    rows, _, length = x.shape
    before = convolution.kernel_size[0] // 2
    chunks = F.pad(x, (before, -length % size)).unfold(2, before + size, size)
    each = chunks.transpose(1, 2).flatten(0, 1)  # (B chunks, D, before + size)
    y = _unpadded(convolution, F.pad(each, (0, before))).unflatten(0, (rows, -1))
    return y.transpose(1, 2).flatten(2)[:, :, :length]


def _after(
    convolution: nn.Conv1d, chunk: Float[Tensor, "B D T"], cache: ChunkCache
) -> Float[Tensor, "B D T"]:
    """One chunk, behind what the cache holds."""
    before = convolution.kernel_size[0] // 2
    held = cache.inputs.get(convolution)
    x = F.pad(chunk, (before, 0)) if held is None else torch.cat([held, chunk], 2)
    cache.inputs[convolution] = x[:, :, x.shape[2] - before :]
    return _unpadded(convolution, F.pad(x, (0, before)))


def _unpadded(convolution: nn.Conv1d, x: Float[Tensor, "B D T"]) -> Float[Tensor, "B D less"]:
    """The convolution without zeros of its own around the input."""
    return F.conv1d(x, convolution.weight, convolution.bias, groups=convolution.groups)


class ConvolutionModule(nn.Module):
    """out(silu(norm(convolve(glu(widen(x)))))): a gated convolution.

    The paper's norm before it and dropout after it are those of the residual around it.

    Args:
        width: Kernel size: how many positions each one sees, itself included.
        norm: Makes the norm after the convolution. The paper uses `BatchNorm`.
    """

    def __init__(
        self, dim: int, *, width: int = 31, norm: Callable[[int], nn.Module] = LayerNorm
    ) -> None:
        super().__init__()
        self.widen = nn.Linear(dim, 2 * dim)
        self.depthwise = depthwise(dim, width)
        self.norm = norm(dim)
        self.to_out = nn.Linear(dim, dim)

    def forward(
        self, x: Vectors, layout: Layout, mask: Mask = everything, cache: Cache | None = None
    ) -> Vectors:
        """A vector for each position, from those near it that the mask allows."""
        x = convolve(self.depthwise, F.glu(self.widen(x)), layout, mask, cache)
        return self.to_out(F.silu(self.norm(x, layout)))


class ConvolutionalGate(nn.Module):
    """narrow(a * convolve(norm(b))), where a and b are the halves of gelu(widen(x)).

    The gate starts open for any input: its convolution starts near zero with a bias of one, as in
    gMLP (Liu et al., 2021).

    Args:
        hidden: Width of both halves together.
        width: Kernel size: how many positions each one sees, itself included.
        norm: Makes the norm of the gating half.
        dropout: Share of the gated elements dropped in training.
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

    def forward(
        self, x: Vectors, layout: Layout, mask: Mask = everything, cache: Cache | None = None
    ) -> Vectors:
        """A vector for each position, gated by those near it that the mask allows."""
        hidden, gating = F.gelu(self.widen(x)).chunk(2, dim=-1)
        gate = convolve(self.depthwise, self.norm(gating, layout), layout, mask, cache)
        return self.narrow(self.dropout(hidden * gate))


def gate_of(config: StackConfig) -> ConvolutionalGate:
    """The convolutional gate, by a stack's settings, as wide as its feed-forward networks."""
    return ConvolutionalGate(
        config.dim,
        config.hidden,
        width=config.convolution.width,
        norm=partial(norm_of, config.convolution.norm),
        dropout=config.feedforward.dropout,
    )


def check_settings(block: str, config: StackConfig, memory_dim: int | None) -> None:
    """Refuse use in a decoder, and any order of norms other than the papers' own."""
    if memory_dim is not None:
        raise ValueError(
            f"a {block} is for encoders and has no cross-attention, but got memory_dim = "
            f"{memory_dim}; use a TransformerBlock in the decoder"
        )
    require(
        config.order == "pre",
        f"a {block} has its norms before its parts and one at its end, as in its paper; "
        f"got order {config.order!r}, use 'pre'",
    )


def check_call(
    block: str, width: int, mask: Mask, cache: Cache | None, memory: Memory | None
) -> None:
    """Refuse what a convolution that looks ahead cannot do: caches, memories, narrow masks."""
    chunked = isinstance(mask, Chunks)
    if cache is not None and not (chunked and isinstance(cache, ChunkCache)):
        raise ValueError(
            f"a {block} takes no cache, since its convolutions look ahead: a new token changes the "
            f"result for those before it; pass the whole sequence, or chunks and a ChunkCache"
        )
    if memory is not None:
        raise ValueError(f"a {block} has no cross-attention; use a decoder's block")
    steps, band = width // 2, mask.band
    if chunked:
        return
    if band is None or any(side is not None and side < steps for side in band):
        raise ValueError(
            f"a convolution of width {width} sees {steps} steps to each side, which {mask} does "
            f"not allow everywhere; use `everything`, or a window of {steps + 1} or more"
        )
