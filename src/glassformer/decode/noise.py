"""Random noise that belongs to a sequence: a function of (seed, branch, step, token) alone.

There is no generator to draw from, so neither the other rows of a batch nor their number nor the
device change what a row gets. Integers are mixed with the rounds of a 32-bit hash, in arithmetic
that wraps the same everywhere. A sample is the argmax of scores + Gumbel noise: Gumbel, 1954.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

MULTIPLIERS = (0x7FEB352D, 0x846CA68B - 2**32)  # as signed 32-bit numbers
STRIDE = 0x9E3779B9 - 2**32  # keeps inputs that are mixed in one after another apart

Int32s = Int[Tensor, "..."]


def mix(x: Int32s) -> Int32s:
    """A bijection of 32-bit numbers that spreads every bit over all of them."""
    x = (x ^ _shift_right(x, 16)) * MULTIPLIERS[0]
    x = (x ^ _shift_right(x, 15)) * MULTIPLIERS[1]
    return x ^ _shift_right(x, 16)


def keys(
    seeds: Int[Tensor, " B"], branches: int, step: int | Int[Tensor, " b"]
) -> Int[Tensor, "B W 2"]:
    """Two 32-bit numbers for each branch, from which the noise of its tokens follows.

    Args:
        step: Of all rows, or of each.
    """
    halves = torch.stack([seeds, seeds >> 32], -1).to(torch.int32)[:, None]  # (B, 1, 2)
    branch = torch.arange(branches, device=seeds.device, dtype=torch.int32)[:, None]
    salt = torch.arange(1, 3, device=seeds.device, dtype=torch.int32)
    key = mix(halves[..., :1] + salt * STRIDE)
    at = torch.as_tensor(step, device=seeds.device).to(torch.int32).reshape(-1, 1, 1)
    for part in (halves[..., 1:], branch, at):
        key = mix(key ^ (part * STRIDE))
    return key


def gumbel(key: Int[Tensor, "B W 2"], tokens: Int[Tensor, "*#places n"]) -> Float[Tensor, "B W n"]:
    """Gumbel noise for these tokens: -log(-log(1 - u)), u uniform in (0, 1)."""
    bits = mix(mix(tokens.to(torch.int32) ^ key[..., :1]) + key[..., 1:])
    # Small u, where the largest noise comes from, keep all their bits in fp32.
    u = ((bits & 0x7FFFFFFF).to(torch.float32) + 0.5) * 2.0**-31
    return -(-torch.log1p(-u.clamp(max=1 - 2.0**-24))).log()


def _shift_right(x: Int32s, bits: int) -> Int32s:
    """A logical shift: zeros come in from the left."""
    return (x >> bits) & (2 ** (32 - bits) - 1)
