"""Rotary positions inside of kernels in Triton: channel j is turned with channel j + HALF."""

import triton
import triton.language as tl


@triton.jit
def turned(x, vectors, cos, sin, channel, turns, HALF: tl.constexpr):  # type: ignore[no-untyped-def]
    """Channels x of a head, in fp32, after the rotation.

    Args:
        vectors: The place in memory of each of x, to find its partner.
        cos, sin: Those of the position, for each pair of channels.
        channel: Of each of x, in its head.
        turns: Which of x are turned; the others stay as they are.
    """
    first, pair = channel < HALF, channel % HALF
    cosine = tl.load(cos + pair, mask=turns, other=1.0)
    sine = tl.load(sin + pair, mask=turns, other=0.0)
    partner = vectors + tl.where(first, HALF, -HALF)
    other = tl.load(partner, mask=turns, other=0.0).to(tl.float32)
    return x.to(tl.float32) * cosine + other * tl.where(first, -sine, sine)
