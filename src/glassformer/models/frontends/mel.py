"""Sound: mel features, a hundred per second, become fewer and wider vectors.

    Subsampling       convolutions over time and frequency   Dong et al., "Speech-Transformer", 2018
    TimeSubsampling   convolutions over time alone           Synnaeve et al., "End-to-end ASR", 2019
    MelResNet         a residual network over time           He et al., 2015, in one dimension

Every convolution that shortens has stride 2, and is centred on frames 0, 2, 4, ... of a row, so

    new length = ceil(length / 2) = floor((length - 1) / 2) + 1

and a row with any frame keeps at least one. Padding is set to zero before each convolution, as it
is at the end of a row on its own, so a row's result does not depend on its batch.

Layouts are shortened by arithmetic on the device. Only a packed batch waits for a GPU, once, to
count the resulting tokens.
"""

from dataclasses import replace
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.layout import Layout, pack, pad, zero_padding
from glassformer.core.norms import NORMS
from glassformer.core.shapes import Vectors
from glassformer.errors import unknown

Frames = Float[Tensor, "B frames M"] | Float[Tensor, "P M"]


class Subsampling(nn.Module):
    """Convolutions over time and frequency, each halving both, then one linear layer.

    Args:
        bins: Number of mel bins (M).
        factor: How many frames become one vector: 2, 4, 8, ... for 1, 2, 3, ... convolutions.
    """

    def __init__(self, bins: int, dim: int, *, factor: int = 4) -> None:
        super().__init__()
        if factor < 2 or factor.bit_count() != 1:
            raise ValueError(
                f"factor must be a power of two, 2 or more, since every convolution halves the "
                f"length; got {factor}, try 4"
            )
        self.bins, self.dim, self.factor = bins, dim, factor
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels, dim, 3, stride=2, padding=1)
            for channels in [1] + [dim] * (factor.bit_length() - 2)
        )
        self.to_vector = nn.Linear(dim * -(-bins // factor), dim)

    @property
    def context(self) -> tuple[int, int]:
        """How many vectors before and after a part of them must be computed for it to be right."""
        return _context(self.factor, self.factor - 1)

    def forward(self, frames: Frames, layout: Layout) -> tuple[Vectors, Layout]:
        """A vector for every `factor` frames, and the layout of the vectors."""
        x, inside = _in_rows(frames, layout, self.bins)
        x = zero_padding(x, inside)[:, None]  # (B, 1, T, M)
        for convolution in self.convolutions:
            x, inside = _over_both(cast(nn.Conv2d, convolution), x), _halved(inside)
            x = F.relu(_zeroed(x, inside), inplace=True)  # (B, D, T/2, M/2)
        x = self.to_vector(x.transpose(1, 2).flatten(2))  # (B, T, D)
        return _in_the_form_of(layout, x, inside)


class TimeSubsampling(nn.Module):
    """Convolutions over time, in which the mel bins are channels, each halving the length.

    Args:
        bins: Number of mel bins (M).
        channels: Width between the convolutions.
        depth: Number of convolutions: 2^depth frames become one vector.
    """

    def __init__(self, bins: int, dim: int, *, channels: int, depth: int) -> None:
        super().__init__()
        self.bins, self.dim, self.factor = bins, dim, 2**depth
        widths = [bins, *[channels] * (depth - 1), dim]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(before, after, 5, stride=2, padding=2) for before, after in pairwise(widths)
        )

    @property
    def context(self) -> tuple[int, int]:
        """How many vectors before and after a part of them must be computed for it to be right."""
        return _context(self.factor, 2 * (self.factor - 1))

    def forward(self, frames: Frames, layout: Layout) -> tuple[Vectors, Layout]:
        """A vector for every `factor` frames, and the layout of the vectors."""
        x, inside = _in_rows(frames, layout, self.bins)
        x = x.mT  # (B, M, T)
        for convolution in self.convolutions:
            x = F.relu(convolution(zero_padding(x, inside, axis=2)))
            inside = _halved(inside)
        return _in_the_form_of(layout, x.mT, inside)


class MelResNet(nn.Module):
    """A small residual network over time, in which the mel bins are channels.

    Args:
        bins: Number of mel bins (M).
        channels: Width inside the network.
        depth: Number of stages, each halving the length: 2^depth frames become one vector.
        norm: A name in NORMS. `batch` ignores padding, but mixes rows in training.
    """

    def __init__(
        self, bins: int, dim: int, *, channels: int, depth: int, norm: str = "layer"
    ) -> None:
        super().__init__()
        if norm not in NORMS:
            raise ValueError(unknown("norm", norm, NORMS))
        self.bins, self.dim, self.factor = bins, dim, 2**depth
        self.stem, self.norm = nn.Conv1d(bins, channels, 3, padding=1), NORMS[norm](channels)
        self.stages = nn.ModuleList(HalvingStage(channels, norm) for _ in range(depth))
        self.to_vector = nn.Linear(channels, dim)

    @property
    def context(self) -> tuple[int, int]:
        """How many vectors before and after a part of them must be computed for it to be right."""
        return _context(self.factor, 3 * (self.factor - 1) + 1)

    def forward(self, frames: Frames, layout: Layout) -> tuple[Vectors, Layout]:
        """A vector for every `factor` frames, and the layout of the vectors."""
        x, inside = _in_rows(frames, layout, self.bins)
        x = _along_time(self.stem, zero_padding(x, inside))
        x = F.relu(self.norm(x, inside))
        for stage in self.stages:
            x = stage(x, inside)
            inside = _halved(inside)
        return _in_the_form_of(layout, self.to_vector(x), inside)


class HalvingStage(nn.Module):
    """Half as many vectors: two convolutions, and a shortcut around them.

        relu(norm(refine(relu(norm(halve(x))))) + shortcut(x))

    Padding is set to zero before each convolution.
    """

    def __init__(self, channels: int, norm: str) -> None:
        super().__init__()
        self.halve = nn.Conv1d(channels, channels, 3, stride=2, padding=1)
        self.halve_norm = NORMS[norm](channels)
        self.refine = nn.Conv1d(channels, channels, 3, padding=1)
        self.refine_norm = NORMS[norm](channels)
        self.shortcut = nn.Conv1d(channels, channels, 1, stride=2)

    def forward(
        self, x: Float[Tensor, "B frames W"], layout: Layout
    ) -> Float[Tensor, "B half_as_many W"]:
        """Half as many vectors as there were."""
        x, inside = zero_padding(x, layout), _halved(layout)
        y = F.relu(self.halve_norm(_along_time(self.halve, x), inside))
        y = self.refine_norm(_along_time(self.refine, zero_padding(y, inside)), inside)
        return F.relu(y + _along_time(self.shortcut, x))


def _context(factor: int, reach: int) -> tuple[int, int]:
    """The vectors that lie within reach, in frames, of the first frame of `factor` for one."""
    return -(-reach // factor), max(0, -(-(reach - factor + 1) // factor))


def _in_rows(frames: Frames, layout: Layout, bins: int) -> tuple[Float[Tensor, "B T M"], Layout]:
    """Padded rows and their layout, at least one frame wide, as a convolution needs."""
    if frames.shape[-1] != bins:
        raise ValueError(
            f"frames have {frames.shape[-1]} mel bins, but the frontend was made for {bins}; "
            f"compute the features with {bins} bins"
        )
    if layout.starts is not None:
        raise ValueError(
            "a frontend for sound needs whole recordings, but this layout starts in the middle "
            "of them; pass the layout the batch came with"
        )
    inside = layout.as_padded()
    if not layout.longest:
        inside = replace(inside, longest=1, reach=1, row_lengths=layout.lengths)
    if layout.is_packed:
        return pad(frames, replace(layout, longest=inside.longest)), inside
    return F.pad(frames, (0, 0, 0, inside.longest - layout.longest)), inside


def _in_the_form_of(
    given: Layout, x: Float[Tensor, "B T D"], inside: Layout
) -> tuple[Vectors, Layout]:
    """Packed if the batch is packed."""
    if not given.is_packed:
        return x, inside
    packed = inside.as_packed()
    return pack(x, packed), packed


def _halved(layout: Layout) -> Layout:
    """The layout after one convolution of stride 2."""
    longest, lengths = (layout.longest + 1) // 2, layout.row_lengths
    return replace(
        layout,
        longest=longest,
        reach=longest,
        tokens=layout.rows * longest if lengths is None else None,
        row_lengths=None if lengths is None else (lengths + 1) // 2,
    )


def _over_both(
    convolution: nn.Conv2d, x: Float[Tensor, "B channels frames bins"]
) -> Float[Tensor, "B D T M"]:
    """A convolution over time and frequency; on a CPU by the kernel that wants channels last."""
    if x.device.type != "cpu":
        return convolution(x)
    last = torch.channels_last
    weight, bias = convolution.weight.to(memory_format=last), convolution.bias
    x = x.to(memory_format=last)
    return F.conv2d(x, weight, bias, convolution.stride, convolution.padding)


def _zeroed(x: Float[Tensor, "B D T M"], layout: Layout) -> Float[Tensor, "B D T M"]:
    """Zeros in the padding, in place: what a convolution returns is large, and needed only once."""
    return x if layout.is_full else x.masked_fill_(~layout.real[:, None, :, None], 0)


def _along_time(
    convolution: nn.Conv1d, x: Float[Tensor, "B frames W"]
) -> Float[Tensor, "B T channels"]:
    return convolution(x.mT).mT
