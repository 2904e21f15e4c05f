"""`paged_attention` as a kernel in Triton, for CUDA.

One program for each request and each head of queries. It reads the keys of the past from their
pages, block by block, with a running softmax (Dao et al., 2022), adds the newest token, and writes
that token into its page. Every place in a block has a softmax of its own, and they are joined at
the end: none waits for the others, and the next blocks are on their way while one is computed.
"""

import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.positions.rotary import Turns
from glassformer.core.steps.rotation_kernel import turned

MOST_KEYS = 32  # at a time,
STAGES = 4  # of which so many are on their way,
ROOM = 2**16  # in so many bytes


@triton.jit
def _capped(x, limit):  # type: ignore[no-untyped-def]
    return limit * (2.0 * tl.sigmoid(2.0 * x / limit) - 1.0)  # limit * tanh(x / limit)


@triton.jit
def _kernel(  # type: ignore[no-untyped-def]
    q,
    k,
    v,
    k_pages,
    v_pages,
    table,
    positions,
    cos,
    sin,
    answer,
    scale,
    softcap,
    window,
    q_row,
    q_head,
    k_row,
    k_head,
    v_row,
    v_head,
    table_row,
    GROUP: tl.constexpr,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    K: tl.constexpr,
    W: tl.constexpr,
    HALF: tl.constexpr,
    K_ROOM: tl.constexpr,
    W_ROOM: tl.constexpr,
    CAPPED: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    head, row = tl.program_id(0), tl.program_id(1)
    kv_head = head // GROUP
    past = tl.load(positions + row)
    at_k, at_w = tl.arange(0, K_ROOM), tl.arange(0, W_ROOM)
    in_k, in_w = at_k < K, at_w < W
    q_at, k_at = q + row * q_row + head * q_head, k + row * k_row + kv_head * k_head
    query = tl.load(q_at + at_k, mask=in_k, other=0.0).to(tl.float32)
    key = tl.load(k_at + at_k, mask=in_k, other=0.0).to(tl.float32)
    if HALF > 0:
        turns, pairs = at_k < 2 * HALF, row * HALF
        query = turned(query, q_at + at_k, cos + pairs, sin + pairs, at_k, turns, HALF)
        key = turned(key, k_at + at_k, cos + pairs, sin + pairs, at_k, turns, HALF)
    query = query * scale
    new_k = key.to(k_pages.dtype.element_ty)
    new_v = tl.load(v + row * v_row + kv_head * v_head + at_w, mask=in_w, other=0.0)
    first = tl.maximum(past + 1 - window, 0)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    mixed = tl.zeros((BLOCK, W_ROOM), tl.float32)
    for start in tl.range(first // BLOCK * BLOCK, past, BLOCK, num_stages=STAGES):
        place = start + tl.arange(0, BLOCK)
        seen = (place < past) & (place >= first)
        page = tl.load(table + row * table_row + place // SIZE, mask=seen, other=0).to(tl.int64)
        token = (page * SIZE + place % SIZE) * HEADS + kv_head
        keys = tl.load(
            k_pages + token[:, None] * K + at_k[None, :],
            mask=seen[:, None] & in_k[None, :],
            other=0.0,
        )
        values = tl.load(
            v_pages + token[:, None] * W + at_w[None, :],
            mask=seen[:, None] & in_w[None, :],
            other=0.0,
        )
        scores = tl.sum(query[None, :] * keys.to(tl.float32), 1)
        if CAPPED:
            scores = _capped(scores, softcap)
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(top, scores)
        base = tl.where(higher == -float("inf"), 0.0, higher)  # of a lane that saw nothing
        weights, kept = tl.exp(scores - base), tl.exp(top - base)
        total = total * kept + weights
        mixed = mixed * kept[:, None] + weights[:, None] * values.to(tl.float32)
        top = higher
    newest = tl.sum(query * new_k.to(tl.float32), 0)
    if CAPPED:
        newest = _capped(newest, softcap)
    highest = tl.maximum(newest, tl.max(top, 0))
    shares, share = tl.exp(top - highest), tl.exp(newest - highest)
    whole = tl.sum(total * shares, 0) + share
    answered = tl.sum(mixed * shares[:, None], 0) + share * new_v.to(tl.float32)
    heads = HEADS * GROUP
    out = (answered / whole).to(answer.dtype.element_ty)
    tl.store(answer + (row * heads + head) * W + at_w, out, mask=in_w)
    if head % GROUP == 0:
        page = tl.load(table + row * table_row + past // SIZE).to(tl.int64)
        token = (page * SIZE + past % SIZE) * HEADS + kv_head
        tl.store(k_pages + token * K + at_k, new_k, mask=in_k)
        tl.store(v_pages + token * W + at_w, new_v, mask=in_w)


def attend(
    q: Float[Tensor, "B H K"],
    k: Float[Tensor, "B G K"],
    v: Float[Tensor, "B G W"],
    k_pages: Float[Tensor, "pages size G K"],
    v_pages: Float[Tensor, "pages size G W"],
    table: Int[Tensor, "B most"],
    positions: Int[Tensor, " B"],
    *,
    scale: float,
    softcap: float | None = None,
    window: int | None = None,
    turns: Turns | None = None,
) -> Float[Tensor, "B H W"]:
    """As `paged_attention.reference`; the last axis of every tensor is contiguous."""
    rows, heads, width = q.shape
    size, groups, value_width = v_pages.shape[1:]
    answer = q.new_empty(rows, heads, value_width)
    cos, sin = (q, q) if turns is None else turns
    k_room, w_room = triton.next_power_of_2(width), triton.next_power_of_2(value_width)
    _kernel[(heads, rows)](
        q,
        k,
        v,
        k_pages,
        v_pages,
        table,
        positions,
        cos,
        sin,
        answer,
        scale,
        1.0 if softcap is None else softcap,
        2**30 if window is None else window,
        *q.stride()[:2],
        *k.stride()[:2],
        *v.stride()[:2],
        table.stride(0),
        GROUP=heads // groups,
        HEADS=groups,
        SIZE=size,
        K=width,
        W=value_width,
        HALF=0 if turns is None else cos.shape[1],
        K_ROOM=k_room,
        W_ROOM=w_room,
        CAPPED=softcap is not None,
        BLOCK=keys_at_once((k_room + w_room) * k_pages.element_size()),
        STAGES=STAGES,
        num_warps=4,
    )
    return answer


def keys_at_once(bytes_each: int) -> int:
    """How many keys a program reads at once, if a key and its value take so many bytes."""
    fit = ROOM // (STAGES * bytes_each)
    return max(16, min(MOST_KEYS, 1 << fit.bit_length() - 1))
