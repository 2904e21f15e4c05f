"""The two forms a tensor of tokens comes in, padded and packed, by their one name.

The letters are explained in `glassformer.core`.
"""

from jaxtyping import Float
from torch import Tensor

Vectors = Float[Tensor, "B T D"] | Float[Tensor, "N D"]
ByHead = Float[Tensor, "B H T K"] | Float[Tensor, "N H K"]


def split_heads(x: Vectors, heads: int) -> ByHead:
    """Deal the channels out to the heads: (B, T, H K) -> (B, H, T, K), (N, H K) -> (N, H, K)."""
    x = x.unflatten(-1, (heads, -1))
    return x.transpose(1, 2) if x.ndim == 4 else x


def merge_heads(x: ByHead) -> Vectors:
    """Lay the heads side by side again."""
    return (x.transpose(1, 2) if x.ndim == 4 else x).flatten(-2)
