"""Linear layers in int8 on a CPU: a quarter of the bytes of fp32, and products of integers.

Each row of a weight has its own scale, and so has each vector, which is quantised as it comes
(dynamic quantisation). Seven bits of vectors are used, so that sums overflow on no processor.
"""

import warnings
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import GlassformerError

SMALLEST = 64  # inputs and outputs, below which a layer stays as it is
ENGINE = "fbgemm"
TINY = torch.finfo(torch.float32).tiny


class Int8Linear(nn.Linear):
    """A linear layer that computes in int8; its weight in fp32 is only kept for reference."""

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None = None) -> None:
        nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        self.register_parameter("weight", weight)
        self.register_parameter("bias", bias)
        self.prepacked = quantised(weight)

    def __deepcopy__(self, memo: dict[int, object]) -> "Int8Linear":
        """Shared by copies: nothing in it ever changes, and what is prepacked cannot be copied."""
        return self

    def forward(self, x: Float[Tensor, "*tokens inside"]) -> Float[Tensor, "*tokens out"]:
        """The product in int8, with the bias added in fp32."""
        return int8_product(x, self.prepacked, self.bias)


@torch.no_grad()
def quantised(weight: Float[Tensor, "N D"]) -> Any:
    """A weight in int8, as the kernels want it."""
    if ENGINE not in torch.backends.quantized.supported_engines:
        raise GlassformerError("int8 needs an x86 processor; leave it out on this one")
    weight = weight.detach().float().contiguous()
    scales = weight.abs().amax(1).clamp(min=TINY) / 127
    usual, torch.backends.quantized.engine = torch.backends.quantized.engine, ENGINE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch will rename these functions
            zeros = torch.zeros(len(weight), dtype=torch.long)
            numbers = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
            return torch.ops.quantized.linear_prepack(numbers, None)
    finally:
        torch.backends.quantized.engine = usual


def int8_product(
    x: Float[Tensor, "*tokens D"], prepacked: Any, bias: Float[Tensor, " N"] | None
) -> Float[Tensor, "*tokens N"]:
    """x Wᵀ + b, in the type of x."""
    rows, scales = x.float(), None
    if rows.numel() > rows.shape[-1]:  # the kernels know one scale for all
        scales = rows.abs().amax(-1, keepdim=True).clamp_(min=TINY)
        rows = rows / scales
    y: Tensor = torch.ops.quantized.linear_dynamic(rows, prepacked, True)
    y = y if scales is None else y * scales
    return (y if bias is None else y + bias).to(x.dtype)
