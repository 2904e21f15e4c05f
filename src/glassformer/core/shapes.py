"""Type aliases for tensors of tokens, each either padded or packed.

The letters are explained in `glassformer.core`; P counts the tokens of a packed memory.
"""

from jaxtyping import Float
from torch import Tensor

Vectors = Float[Tensor, "B T D"] | Float[Tensor, "N D"]
MemoryVectors = Float[Tensor, "B S E"] | Float[Tensor, "P E"]

ByHead = Float[Tensor, "B H T K"] | Float[Tensor, "N H K"]
Queries = ByHead
Keys = Float[Tensor, "B G S K"] | Float[Tensor, "P G K"]
Values = Float[Tensor, "B G S W"] | Float[Tensor, "P G W"]
Answers = Float[Tensor, "B H T W"] | Float[Tensor, "N H W"]
NewKeys = Float[Tensor, "B G T K"] | Float[Tensor, "N G K"]
NewValues = Float[Tensor, "B G T W"] | Float[Tensor, "N G W"]


def split_heads(x: Vectors, heads: int) -> ByHead:
    """Split the channels into heads: (B, T, H K) -> (B, H, T, K), (N, H K) -> (N, H, K)."""
    x = x.unflatten(-1, (heads, -1))
    return x.transpose(1, 2) if x.ndim == 4 else x


def merge_heads(x: ByHead) -> Vectors:
    """Concatenate the heads again."""
    return (x.transpose(1, 2) if x.ndim == 4 else x).flatten(-2)
