"""Chance that belongs to a sequence: every number of it follows from (seed, branch, step, token).

No generator is drawn from, so neither the neighbours in a batch nor their number nor the device
change what a row gets. Integers are mixed with the rounds of a hash of 32 bits, in arithmetic that
wraps alike everywhere. A sample is the best of scores + Gumbel noise: Gumbel, 1954.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

MULTIPLIERS = (0x7FEB352D, 0x846CA68B - 2**32)  # as signed numbers of 32 bits
STRIDE = 0x9E3779B9 - 2**32  # keeps what is mixed in one after another apart

Words = Int[Tensor, "..."]


def mixed(x: Words) -> Words:
    """Every bit of each 32-bit number spread over all of it; one to one."""
    x = (x ^ _shifted(x, 16)) * MULTIPLIERS[0]
    x = (x ^ _shifted(x, 15)) * MULTIPLIERS[1]
    return x ^ _shifted(x, 16)


def keys(seeds: Int[Tensor, " B"], branches: int, step: int) -> Int[Tensor, "B W 2"]:
    """Two 32-bit numbers for each branch at this step, which its tokens' noise follows from."""
    halves = torch.stack([seeds, seeds >> 32], -1).to(torch.int32)[:, None]  # (B, 1, 2)
    branch = torch.arange(branches, device=seeds.device, dtype=torch.int32)[:, None]
    salt = torch.tensor([1, 2], device=seeds.device, dtype=torch.int32)
    key = mixed(halves[..., :1] + salt * STRIDE)
    for part in (halves[..., 1:], branch, torch.full_like(branch, step)):
        key = mixed(key ^ (part * STRIDE))
    return key


def gumbel(key: Int[Tensor, "B W 2"], tokens: Int[Tensor, "*#places n"]) -> Float[Tensor, "B W n"]:
    """Gumbel noise for these tokens: -log(-log(1 - u)), u uniform in (0, 1)."""
    words = mixed(mixed(tokens.to(torch.int32) ^ key[..., :1]) + key[..., 1:])
    # Small u, where the largest noise comes from, keep all their bits in fp32.
    u = ((words & 0x7FFFFFFF).to(torch.float32) + 0.5) * 2.0**-31
    return -(-torch.log1p(-u.clamp(max=1 - 2.0**-24))).log()


def _shifted(x: Words, bits: int) -> Words:
    """Shifted right, zeros coming in from the left."""
    return (x >> bits) & (2 ** (32 - bits) - 1)
