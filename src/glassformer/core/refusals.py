"""Checks of attention's arguments: each error says what is wrong, what was found and what to do."""

from torch import Tensor

from glassformer.core.caches import Cache, KeyCache, Memory
from glassformer.core.kernels import Call
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, Window
from glassformer.core.positions import Position
from glassformer.core.shapes import Keys, MemoryVectors, Queries, Values, Vectors


def check(q: Queries, k: Keys, v: Values, call: Call) -> None:
    """Refuse a mask, queries and keys that do not fit together."""
    if not isinstance(call.mask, Mask):
        raise ValueError(
            f"a mask is a rule such as causal or window(3), got a {type(call.mask).__name__}"
        )
    call.mask.check(call.queries)
    if q.shape[1] % k.shape[1]:
        raise ValueError(
            f"{q.shape[1]} query heads cannot share {k.shape[1]} key heads; "
            f"choose a number of key heads that divides {q.shape[1]}"
        )
    if call.queries.rows != call.keys.rows:
        raise ValueError(
            f"there are {call.queries.rows} rows of queries, but {call.keys.rows} of keys; "
            f"give every row of queries one row of keys"
        )


def refuse_idle(
    memory: MemoryVectors | Memory | None,
    memory_layout: Layout | None,
    position: Position | None,
    cache: Cache | None,
) -> None:
    """Refuse arguments that would have no effect."""
    if memory is not None and (position is not None or cache is not None):
        raise ValueError(
            "cross-attention takes no position and no cache; "
            "to compute the memory's keys once, pass what `keep` returns"
        )
    if memory_layout is not None and (memory is None or isinstance(memory, Memory)):
        raise ValueError(
            "a memory_layout belongs to a memory that is a tensor; "
            "leave it out, or pass it to `keep`"
        )


def refuse_window(window: Window | None) -> None:
    """Refuse cross-attention with a window."""
    if window is not None:
        raise ValueError(
            f"a {window} counts steps within one sequence, and a memory is another one; "
            f"use a layer without a window for cross-attention"
        )


def keys_of(cache: Cache | None) -> KeyCache | None:
    """The cache, refused unless it holds keys, which softmax attention needs."""
    if cache is None or isinstance(cache, KeyCache):
        return cache
    raise ValueError(
        f"softmax attention cannot continue from a {type(cache).__name__}, which holds no keys; "
        f"pass a GrowingCache, or use the kind of attention it is made for"
    )


def fitting_layout(name: str, x: Vectors, layout: Layout | None) -> Layout:
    """The layout of `x`, refused when it describes tokens of another shape."""
    if layout is None:
        if x.ndim == 2:
            raise ValueError(
                f"{name} is packed, {tuple(x.shape)}; pass the layout that assigns tokens to rows"
            )
        return full_layout(x)
    if layout.row_of is not None:
        described: tuple[int, ...] = (len(layout.row_of),)
    else:
        described = (layout.rows, layout.longest)
    if described != tuple(x.shape[:-1]):
        raise ValueError(
            f"{name} holds {tuple(x.shape[:-1])} tokens, but its layout describes {described}; "
            f"make the layout from this batch"
        )
    return layout


def full_layout(x: Tensor, steps: int = 1) -> Layout:
    """The layout of padded vectors whose rows are all full."""
    return Layout.full(x.shape[0], x.shape[steps], x.device)
