"""The kernels of attention over short packed rows, in Triton; import it only where Triton is.

One program for each head and each tile of tokens, which may hold several rows: it reads the keys
from the first of its rows to the last, tile by tile with a running softmax (Dao et al., 2022), and
hides those of other rows from each query. So a row of 20 tokens takes a third of a tile, where a
kernel with a program for each row spends a whole one on it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE = 64  # tokens; fewer if heads are wide
WIDE = 128
LOG2_E = tl.constexpr(1.4426950408889634)  # weights are powers of 2, which are cheaper


@triton.jit
def _span(rows, own, others, at, real, CAUSAL: tl.constexpr, OF_KEYS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Which tokens of the other side each of these belongs with: from the first to before the end.

    Causal rows end together, so a query sees the keys up to its own place, counted from the end.
    """
    row = tl.load(rows + at, mask=real, other=0)
    first = tl.load(others + row, mask=real, other=0)
    end = tl.load(others + row + 1, mask=real, other=0)
    if CAUSAL:
        place = at + end - tl.load(own + row + 1, mask=real, other=0)  # on the other side
        if OF_KEYS:
            first = tl.where(real, tl.maximum(first, place), 0)
        else:
            end = tl.where(real, tl.minimum(end, place + 1), 0)
    return first, end


@triton.jit
def _rows_of(x, at, real, token, K: tl.constexpr, ROOM: tl.constexpr):  # type: ignore[no-untyped-def]
    """A tile of vectors."""
    at_k = tl.arange(0, ROOM)
    place = x + at.to(tl.int64)[:, None] * token + at_k[None, :]
    return tl.load(place, mask=real[:, None] & (at_k < K)[None, :], other=0.0)


@triton.jit
def _store_rows(x, values, at, real, token, K: tl.constexpr, ROOM: tl.constexpr):  # type: ignore[no-untyped-def]
    at_k = tl.arange(0, ROOM)
    place = x + at.to(tl.int64)[:, None] * token + at_k[None, :]
    tl.store(place, values, mask=real[:, None] & (at_k < K)[None, :])


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    q, k, v, answer, lse, q_bounds, k_bounds, q_rows, tokens, scale,
    q_token, q_head, k_token, k_head, v_token, v_head, a_token,
    CAUSAL: tl.constexpr, K: tl.constexpr, ROOM: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    tile, head = tl.program_id(0), tl.program_id(1)
    at = tile * TILE + tl.arange(0, TILE)
    real = at < tokens
    first, end = _span(q_rows, q_bounds, k_bounds, at, real, CAUSAL, False)
    low, high = tl.load(k_bounds + tl.load(q_rows + tile * TILE)), tl.max(end)
    x = _rows_of(q + head * q_head, at, real, q_token, K, ROOM)
    highest = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    found = tl.zeros([TILE, ROOM], tl.float32)
    for start in range(low, high, TILE):
        there = start + tl.arange(0, TILE)
        inside = there < high
        keys = _rows_of(k + head * k_head, there, inside, k_token, K, ROOM)
        values = _rows_of(v + head * v_head, there, inside, v_token, K, ROOM)
        scores = tl.dot(x, tl.trans(keys)) * scale
        seen = (there[None, :] >= first[:, None]) & (there[None, :] < end[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        now = tl.maximum(highest, tl.max(scores, 1))
        base = tl.where(now == float("-inf"), 0.0, now)
        weights, fades = tl.exp2(scores - base[:, None]), tl.exp2(highest - base)
        total = total * fades + tl.sum(weights, 1)
        found = found * fades[:, None] + tl.dot(weights.to(values.dtype), values)
        highest = now
    some = total > 0  # a query that sees nothing answers zero
    found = found / tl.where(some, total, 1.0)[:, None]
    _store_rows(answer + head * K, found.to(x.dtype), at, real, a_token, K, ROOM)
    logs = tl.where(some, highest + tl.log2(tl.where(some, total, 1.0)), 0.0)
    tl.store(lse + head * tokens + at, logs, mask=real)


@triton.jit
def _query_gradients(  # type: ignore[no-untyped-def]
    grad, q, k, v, answer, lse, delta, grad_q, q_bounds, k_bounds, q_rows, tokens, scale,
    q_token, q_head, k_token, k_head, v_token, v_head, a_token,
    CAUSAL: tl.constexpr, K: tl.constexpr, ROOM: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    tile, head = tl.program_id(0), tl.program_id(1)
    at = tile * TILE + tl.arange(0, TILE)
    real = at < tokens
    first, end = _span(q_rows, q_bounds, k_bounds, at, real, CAUSAL, False)
    low, high = tl.load(k_bounds + tl.load(q_rows + tile * TILE)), tl.max(end)
    x = _rows_of(q + head * q_head, at, real, q_token, K, ROOM)
    push = _rows_of(grad + head * K, at, real, a_token, K, ROOM)
    own = _rows_of(answer + head * K, at, real, a_token, K, ROOM)
    logs = tl.load(lse + head * tokens + at, mask=real, other=0.0)
    mean = tl.sum(push.to(tl.float32) * own.to(tl.float32), 1)
    tl.store(delta + head * tokens + at, mean, mask=real)
    found = tl.zeros([TILE, ROOM], tl.float32)
    for start in range(low, high, TILE):
        there = start + tl.arange(0, TILE)
        inside = there < high
        keys = _rows_of(k + head * k_head, there, inside, k_token, K, ROOM)
        values = _rows_of(v + head * v_head, there, inside, v_token, K, ROOM)
        seen = (there[None, :] >= first[:, None]) & (there[None, :] < end[:, None])
        scores = tl.dot(x, tl.trans(keys)) * scale
        weights = tl.where(seen, tl.exp2(scores - logs[:, None]), 0.0)
        of_scores = weights * (tl.dot(push, tl.trans(values)) - mean[:, None])
        found += tl.dot(of_scores.to(keys.dtype), keys)
    found *= scale / LOG2_E
    _store_rows(grad_q + head * K, found.to(x.dtype), at, real, a_token, K, ROOM)


@triton.jit
def _key_gradients(  # type: ignore[no-untyped-def]
    grad, q, k, v, lse, delta, grad_k, grad_v, q_bounds, k_bounds, k_rows, tokens, queries, scale,
    q_token, q_head, k_token, k_head, v_token, v_head, a_token,
    CAUSAL: tl.constexpr, K: tl.constexpr, ROOM: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    tile, head = tl.program_id(0), tl.program_id(1)
    there = tile * TILE + tl.arange(0, TILE)
    real = there < tokens
    first, end = _span(k_rows, k_bounds, q_bounds, there, real, CAUSAL, True)
    low, high = tl.min(tl.where(real, first, 2147483647)), tl.max(end)
    keys = _rows_of(k + head * k_head, there, real, k_token, K, ROOM)
    values = _rows_of(v + head * v_head, there, real, v_token, K, ROOM)
    of_keys = tl.zeros([TILE, ROOM], tl.float32)
    of_values = tl.zeros([TILE, ROOM], tl.float32)
    for start in range(low, high, TILE):
        at = start + tl.arange(0, TILE)
        inside = at < high
        x = _rows_of(q + head * q_head, at, inside, q_token, K, ROOM)
        push = _rows_of(grad + head * K, at, inside, a_token, K, ROOM)
        logs = tl.load(lse + head * queries + at, mask=inside, other=0.0)
        mean = tl.load(delta + head * queries + at, mask=inside, other=0.0)
        seen = (at[:, None] >= first[None, :]) & (at[:, None] < end[None, :])
        scores = tl.dot(x, tl.trans(keys)) * scale
        weights = tl.where(seen, tl.exp2(scores - logs[:, None]), 0.0)
        of_values += tl.dot(tl.trans(weights.to(push.dtype)), push)
        of_scores = weights * (tl.dot(push, tl.trans(values)) - mean[:, None])
        of_keys += tl.dot(tl.trans(of_scores.to(x.dtype)), x)
    of_keys *= scale / LOG2_E
    _store_rows(grad_k + head * K, of_keys.to(keys.dtype), there, real, a_token, K, ROOM)
    _store_rows(grad_v + head * K, of_values.to(values.dtype), there, real, a_token, K, ROOM)


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bounds: tuple[Tensor, Tensor],
    q_rows: Tensor,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Answers (N, H, K), and the logarithms to base 2 of the sums of their weights, (H, N)."""
    tokens, heads, width = q.shape
    answer = torch.empty((tokens, heads, width), device=q.device, dtype=q.dtype)
    lse = torch.empty((heads, tokens), device=q.device, dtype=torch.float32)
    shape = shape_of(width)
    _forward[triton.cdiv(tokens, shape["TILE"]), heads](
        q, k, v, answer, lse, *bounds, q_rows, tokens, scale * LOG2_E.value,
        *strides(q, k, v), heads * width, CAUSAL=causal, K=width, **shape,
    )  # fmt: skip
    return answer, lse


def backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    answer: Tensor,
    lse: Tensor,
    bounds: tuple[Tensor, Tensor],
    rows: tuple[Tensor, Tensor],
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and values."""
    tokens, heads, width = q.shape
    grad_q, grad_k, grad_v = (
        torch.empty(x.shape, device=x.device, dtype=x.dtype) for x in (q, k, v)
    )
    delta, shape = torch.empty_like(lse), shape_of(width)
    rest = *strides(q, k, v), heads * width
    _query_gradients[triton.cdiv(tokens, shape["TILE"]), heads](
        grad, q, k, v, answer, lse, delta, grad_q, *bounds, rows[0], tokens, scale * LOG2_E.value,
        *rest, CAUSAL=causal, K=width, **shape,
    )  # fmt: skip
    _key_gradients[triton.cdiv(len(k), shape["TILE"]), heads](
        grad, q, k, v, lse, delta, grad_k, grad_v, *bounds, rows[1], len(k), tokens,
        scale * LOG2_E.value, *rest, CAUSAL=causal, K=width, **shape,
    )  # fmt: skip
    return grad_q, grad_k, grad_v


def shape_of(width: int) -> dict[str, int]:
    """The room for a head, and the tokens of a tile."""
    return {
        "ROOM": max(16, triton.next_power_of_2(width)),
        "TILE": TILE if width <= WIDE else TILE // 2,
    }


def strides(*tensors: Tensor) -> tuple[int, ...]:
    """Those of tokens and heads of each tensor; the elements of a vector lie side by side."""
    return tuple(stride for x in tensors for stride in x.stride()[:2])
