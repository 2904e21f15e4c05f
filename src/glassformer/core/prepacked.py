"""Weights prepacked by oneDNN: in the order in which its kernels on a CPU read them.

A product with few rows spends much of its time on fetching the weight in an awkward order. Intel's
MKL, which PyTorch uses otherwise, takes twice as long on other processors than Intel's.
"""

import torch
from jaxtyping import Float
from torch import Tensor

ROWS = 32  # what weights are laid out for; products of other numbers are computed as well
WIDE = 256  # from here on prepacked weights are faster for two rows and more,
MANY_PRODUCTS = 1 << 20  # and beyond so many products for any number


def can_prepack(weight: Tensor) -> bool:
    """Whether this machine has the kernels, and the weight is on its CPU in fp32."""
    there = hasattr(torch.ops.mkldnn, "_linear_pointwise") and torch.backends.mkldnn.is_available()
    return there and weight.device.type == "cpu" and weight.dtype == torch.float32


def rows_to_prepack(weight: Float[Tensor, "N D"]) -> int | None:
    """From how many rows on a prepacked copy of a weight is faster; None if there can be none."""
    if not can_prepack(weight):
        return None
    rows = MANY_PRODUCTS // weight.numel() + 1
    return min(2, rows) if min(weight.shape) >= WIDE else rows


def prepacked(weight: Float[Tensor, "N D"]) -> Tensor:
    """A weight for products with few rows."""
    found: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
    return found


def prepacked_product(
    x: Float[Tensor, "*tokens D"], weight: Tensor, bias: Float[Tensor, " N"] | None
) -> Float[Tensor, "*tokens N"]:
    """x Wᵀ + b, of a prepacked weight."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y
