"""The queries, keys and values of prompts, turned and put into their pages: one kernel in Triton.

One program for each token.
"""

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from glassformer.core.caches.paged_cache import PagedCache
from glassformer.core.layout import Layout
from glassformer.core.positions.rotary import Turns
from glassformer.core.steps.rotation_kernel import turned


@triton.jit
def _kernel(  # type: ignore[no-untyped-def]
    heads,
    cos,
    sin,
    answer,
    k_pages,
    v_pages,
    pages,
    slots,
    QUERIES: tl.constexpr,
    GROUPS: tl.constexpr,
    SIZE: tl.constexpr,
    K: tl.constexpr,
    HALF: tl.constexpr,
    ROOM: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    TURNED: tl.constexpr = QUERIES + GROUPS
    c = tl.arange(0, ROOM)
    head, channel = c // K, c % K
    at = heads + token * ((TURNED + GROUPS) * K)
    x = tl.load(at + c, mask=head < TURNED + GROUPS, other=0.0)
    if HALF > 0:
        turns, pairs = (head < TURNED) & (channel < 2 * HALF), token * HALF
        x = turned(x, at + c, cos + pairs, sin + pairs, channel, turns, HALF).to(x.dtype)
        tl.store(answer + token * (TURNED * K) + c, x, mask=head < TURNED)
    place = (tl.load(pages + token) * SIZE + tl.load(slots + token)) * (GROUPS * K)
    tl.store(k_pages + place + c - QUERIES * K, x, mask=(head >= QUERIES) & (head < TURNED))
    tl.store(v_pages + place + c - TURNED * K, x, mask=(head >= TURNED) & (head < TURNED + GROUPS))


def turn_and_keep(
    heads: Float[Tensor, "N HGG K"], cache: PagedCache, layout: Layout, turns: Turns | None
) -> Float[Tensor, "N HG K"]:
    """The queries and keys, turned; the keys are put into their pages, and so are the values."""
    size, groups, width = cache.k_pages.shape[1:]
    queries = heads.shape[1] - 2 * groups
    qk = heads[:, : queries + groups]
    answer = qk if turns is None else qk.new_empty(qk.shape)
    cos, sin = (heads, heads) if turns is None else turns
    _kernel[(len(heads),)](
        heads,
        cos,
        sin,
        answer,
        cache.k_pages,
        cache.v_pages,
        *cache.places(layout),
        QUERIES=queries,
        GROUPS=groups,
        SIZE=size,
        K=width,
        HALF=0 if turns is None else cos.shape[1],
        ROOM=triton.next_power_of_2(heads.shape[1] * width),
    )
    return answer
