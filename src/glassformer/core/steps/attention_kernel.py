"""`StepAttention` as one kernel in Triton, for CUDA.

A program serves one row and one head of keys, with all queries that look there: the heads that
share it, of all branches. It starts from each branch's own newest token, which no other sees, and
goes on over the slots before it, with the softmax of the tokens so far (Milakov and Gimelshein,
2018). How many slots there are is read on the device, so that a captured graph reads no more.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from glassformer.core.caches import Ancestry
from glassformer.core.steps.overlap import can_overlap

MANY = 264  # programs that keep an H200 busy, and then read fewer slots at once


@triton.jit
def attention_kernel(
    qkv,
    cos,
    sin,
    keys,
    values,
    seen,
    following,
    lengths,
    y,
    slots,
    positions,
    scale,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    ROTATED: tl.constexpr,
    BRANCHES: tl.constexpr,
    EVEN: tl.constexpr,
    OVERLAP: tl.constexpr,
    QUERIES: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_S: tl.constexpr,
) -> None:
    if OVERLAP:
        gdc_wait()
        gdc_launch_dependents()
    row = tl.program_id(0)
    group = tl.program_id(1)
    SHARED: tl.constexpr = HEADS // KV_HEADS
    query = tl.arange(0, QUERIES)
    branch = query // SHARED
    head = group * SHARED + query % SHARED
    real = (query < BRANCHES * SHARED)[:, None]
    c = tl.arange(0, BLOCK_K)
    inside = (c < WIDTH)[None, :]
    token = row * BRANCHES + branch
    projected = qkv + token[:, None] * ((HEADS + 2 * KV_HEADS) * WIDTH)
    at_q = projected + head[:, None] * WIDTH
    at_k = projected + (HEADS + group) * WIDTH
    at_v = at_k + KV_HEADS * WIDTH
    q = tl.load(at_q + c[None, :], real & inside, other=0.0).to(tl.float32)
    k = tl.load(at_k + c[None, :], real & inside, other=0.0).to(tl.float32)
    v = tl.load(at_v + c[None, :], real & inside, other=0.0)
    if ROTATED > 0:
        HALF: tl.constexpr = ROTATED // 2
        partner = tl.where(c < HALF, c + HALF, tl.where(c < ROTATED, c - HALF, c))
        position = tl.minimum(tl.load(lengths + row), positions - 1)
        turn_cos = tl.load(cos + position * WIDTH + c, c < WIDTH, other=0.0)[None, :]
        turn_sin = tl.load(sin + position * WIDTH + c, c < WIDTH, other=0.0)[None, :]
        other_q = tl.load(at_q + partner[None, :], real & inside, other=0.0).to(tl.float32)
        other_k = tl.load(at_k + partner[None, :], real & inside, other=0.0).to(tl.float32)
        q = q * turn_cos + other_q * turn_sin
        k = k * turn_cos + other_k * turn_sin
    stored = k.to(keys.dtype.element_ty)
    used = tl.load(following)
    own = (row * KV_HEADS + group).to(tl.int64) * slots * WIDTH
    at_slot = own + (used + branch)[:, None] * WIDTH + c[None, :]
    writes = real & inside & (query % SHARED == 0)[:, None]
    tl.store(keys + at_slot, stored, writes)
    tl.store(values + at_slot, v, writes)
    best = tl.sum(q * stored.to(tl.float32), axis=1) * scale
    total = tl.full((QUERIES,), 1.0, tl.float32)
    answer = v.to(tl.float32)
    for start in range(0, used, BLOCK_S):
        s = start + tl.arange(0, BLOCK_S)
        there = s < used
        at = own + s[:, None] * WIDTH + c[None, :]
        old_k = tl.load(keys + at, there[:, None] & inside, other=0.0)
        old_v = tl.load(values + at, there[:, None] & inside, other=0.0)
        if QUERIES == 1:
            scores = tl.sum(old_k.to(tl.float32) * q, axis=1)[None, :]
        else:
            scores = tl.dot(q.to(old_k.dtype), tl.trans(old_k), input_precision="ieee")
        visible = there[None, :]
        if not EVEN:
            line = seen + token.to(tl.int64)[:, None] * slots + s[None, :]
            visible = tl.load(line, real & there[None, :], other=0) != 0
        scores = tl.where(visible, scores * scale, float("-inf"))
        higher = tl.maximum(best, tl.max(scores, axis=1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(best - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        answer = answer * shrink[:, None]
        if QUERIES == 1:
            answer += tl.sum(tl.trans(weights) * old_v.to(tl.float32), axis=0)[None, :]
        else:
            answer += tl.dot(weights.to(old_v.dtype), old_v, input_precision="ieee")
        best = higher
    answer = answer / total[:, None]
    at_y = y + token[:, None] * (HEADS * WIDTH) + head[:, None] * WIDTH + c[None, :]
    tl.store(at_y, answer.to(y.dtype.element_ty), real & inside)


def run(
    qkv: Tensor,
    k: Tensor,
    v: Tensor,
    ancestry: Ancestry,
    *,
    heads: int,
    scale: float,
    rotation: tuple[Tensor, Tensor] | None,
    rotated: int,
) -> Tensor:
    """The answers; the cache is written in place."""
    rows, kv_heads, slots, width = k.shape
    branches = ancestry.branches
    queries = branches * heads // kv_heads
    y = torch.empty(rows * branches, heads * width, dtype=qkv.dtype, device=qkv.device)
    cos, sin = (k, k) if rotation is None else rotation
    many, overlap = rows * kv_heads >= MANY, rows * branches == 1 and can_overlap(qkv.device)
    if queries == 1:
        block_s, warps = 32 if many else 128, 2
    else:
        block_s, warps = (64, 2) if many else (128, 4)
    attention_kernel[(rows, kv_heads)](
        qkv,
        cos,
        sin,
        k,
        v,
        ancestry.seen.view(torch.uint8),
        ancestry.next,
        ancestry.lengths,
        y,
        slots,
        len(cos),
        scale,
        HEADS=heads,
        KV_HEADS=kv_heads,
        WIDTH=width,
        ROTATED=rotated,
        BRANCHES=branches,
        EVEN=ancestry.even,
        OVERLAP=overlap,
        QUERIES=1 if queries == 1 else max(16, triton.next_power_of_2(queries)),
        BLOCK_K=max(16, triton.next_power_of_2(width)),
        BLOCK_S=block_s,
        num_warps=warps,
        launch_pdl=overlap,
    )
    return y
