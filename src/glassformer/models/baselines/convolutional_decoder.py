"""A decoder of causal convolutions that attends to the source after each pair of them.

    x + conv(relu(conv(norm(x))))        each sees its own position and those before it
    x + cross_attention(norm(x))         if there is a memory

Gehring et al., 2017, with the layers of Bai et al., 2018. Like a Transformer it computes all steps
of a known text at once. Step by step it keeps, instead of keys, each convolution's last inputs.
"""

from collections.abc import Sequence
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import StackConfig
from glassformer.core.caches import Memory, StateCache
from glassformer.core.dropout import Dropout
from glassformer.core.layout import Layout, zero_padding
from glassformer.core.masks import Mask, causal
from glassformer.core.shapes import MemoryVectors, Vectors
from glassformer.models.baselines.rows import in_rows, in_the_form_of, refuse_other_mask
from glassformer.models.blocks.base import cross_attention_of, norm_of, residual_of

Pasts = Float[Tensor, "B 2 view D"]  # the last inputs of both convolutions


class ConvolutionalDecoder(nn.Module):
    """Reads or continues a sequence from left to right.

    Args:
        memory_dim: Width of the memory to attend to; None for a language model, which has none.
    """

    def __init__(self, config: StackConfig, *, memory_dim: int | None = None) -> None:
        super().__init__()
        self.dim, self.dropout = config.dim, Dropout(config.dropout)
        self.layers = nn.ModuleList(
            CausalLayer(config, dilation=2**number, memory_dim=memory_dim)
            for number in range(config.depth)
        )
        self.norm = None if config.order == "post" else norm_of(config.norm, config.dim)

    def forward(
        self,
        x: Vectors,
        *,
        layout: Layout,
        memory: Sequence[Memory] | None = None,
        mask: Mask = causal,
        caches: Sequence[StateCache] | None = None,
    ) -> Vectors:
        """A vector for each token of `x`; called like `Decoder`."""
        refuse_other_mask("a decoder of kind tcn", mask, causal)
        if not layout.longest:
            return x
        placed = layout if caches is None else caches[0].place(layout)
        rows, inside = self.dropout(in_rows(x, layout)), placed.as_padded()
        for number, layer in enumerate(self.layers):
            rows = layer(
                rows,
                inside,
                None if memory is None else memory[number],
                None if caches is None else caches[number],
            )
        rows = rows if self.norm is None else self.norm(rows, inside)
        return in_the_form_of(layout, rows)

    def keep(self, memory: MemoryVectors, layout: Layout) -> list[Memory]:
        """What each layer needs of the memory, computed once."""
        rows = in_rows(memory, layout)
        return [cast(CausalLayer, layer).keep(rows, layout.as_padded()) for layer in self.layers]

    def new_caches(self) -> list[StateCache]:
        """Empty caches for decoding from left to right, one per layer."""
        return [StateCache() for _ in self.layers]


class CausalLayer(nn.Module):
    """Two convolutions of one dilation, and cross-attention to the memory."""

    def __init__(self, config: StackConfig, *, dilation: int, memory_dim: int | None) -> None:
        super().__init__()
        width, dim = config.convolution.width, config.dim
        self.view = dilation * (width - 1)
        self.first = nn.Conv1d(dim, dim, width, dilation=dilation)
        self.second = nn.Conv1d(dim, dim, width, dilation=dilation)
        self.residual = residual_of(config)
        self.cross_attention = self.cross_residual = None
        if memory_dim is not None:
            self.cross_attention = cross_attention_of(config, memory_dim)
            self.cross_residual = residual_of(config)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        layout: Layout,
        memory: Memory | None,
        cache: StateCache | None,
    ) -> Float[Tensor, "B T D"]:
        """The vectors after this layer, each from the positions up to its own."""
        pasts = None if cache is None else cache.before(layout)
        if pasts is None:
            pasts = x.new_zeros(len(x), 2, self.view, x.shape[-1])
        inputs: list[Tensor] = []
        convolutions = partial(self._convolutions, layout=layout, pasts=pasts, inputs=inputs)
        x = self.residual(x, convolutions, layout)
        if cache is not None:
            latest = [last_of(vectors, layout, self.view) for vectors in inputs]
            cache.hold(torch.stack(latest, 1).to(pasts.dtype), layout)
        if self.cross_attention is None or self.cross_residual is None:
            return x
        if memory is None:
            raise ValueError("a decoder of kind tcn attends to a memory; pass what `keep` returns")
        cross_attention = partial(self.cross_attention, memory=memory, layout=layout)
        return self.cross_residual(x, cross_attention, layout)

    def _convolutions(
        self, x: Float[Tensor, "B T D"], layout: Layout, pasts: Pasts, inputs: list[Tensor]
    ) -> Float[Tensor, "B T D"]:
        """Both convolutions over past and new vectors; their inputs are appended to `inputs`."""

        def convolve(convolution: nn.Conv1d, past: Tensor, x: Tensor) -> Tensor:
            inputs.append(torch.cat([past.to(x.dtype), zero_padding(x, layout)], 1))
            return convolution(inputs[-1].mT).mT

        hidden = F.relu(convolve(self.first, pasts[:, 0], x))
        return convolve(self.second, pasts[:, 1], hidden)

    def keep(self, memory: MemoryVectors, layout: Layout) -> Memory:
        """What cross-attention needs of the memory, computed once."""
        if self.cross_attention is None:
            raise ValueError("this decoder has no cross-attention; build it with a memory_dim")
        return self.cross_attention.keep(memory, layout)


def last_of(
    seen: Float[Tensor, "B longer D"], layout: Layout, view: int
) -> Float[Tensor, "B view D"]:
    """The last `view` vectors of every row, given `view` earlier ones and those of the layout."""
    if layout.is_full:
        return seen[:, seen.shape[1] - view :]
    at = layout.lengths[:, None] + torch.arange(view, device=seen.device)  # (B, view)
    return seen.gather(1, at[..., None].expand(-1, -1, seen.shape[-1]))
