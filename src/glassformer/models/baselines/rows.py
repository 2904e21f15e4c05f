"""What the baselines share: padded rows inside, the form of the batch outside, and no masks."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.layout import Layout, pack, pad, zero_padding
from glassformer.core.masks import Mask
from glassformer.core.shapes import MemoryVectors, Vectors


def in_rows(x: Vectors | MemoryVectors, layout: Layout) -> Float[Tensor, "rows longest width"]:
    """Padded rows, with zeros in the padding."""
    return pad(x, layout) if layout.is_packed else zero_padding(x, layout)


def in_the_form_of(layout: Layout, x: Float[Tensor, "B T D"]) -> Vectors:
    """Packed if the batch is packed."""
    return pack(x, layout) if layout.is_packed else x


def run_layers(layers: nn.RNNBase, x: Any, state: Any = None) -> Any:
    """Recurrent layers in the precision of their weights.

    Under autocast PyTorch runs them in fp16 on a GPU, even if bf16 is requested; small gradients
    underflow there, and errors accumulate from state to state.
    """
    weight = next(layers.parameters())
    with torch.autocast(weight.device.type, enabled=False):
        return layers(x.to(weight.dtype), state)


def refuse_other_mask(name: str, mask: Mask, only: Mask) -> None:
    """Refuse a mask: what a baseline sees is fixed by its construction."""
    if mask != only:
        raise ValueError(
            f"{name} can only see {only}, got the mask {mask}; "
            f'leave out the mask, or use kind = "attention", which takes any'
        )
