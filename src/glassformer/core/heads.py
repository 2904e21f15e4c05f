"""Heads: how many there are, how wide they are, and which projections have a bias."""

from collections.abc import Collection
from dataclasses import dataclass

from glassformer.errors import unknown

PROJECTIONS = ("q", "k", "v", "out")


@dataclass(frozen=True, slots=True)
class Heads:
    """The number of heads and their widths.

    Args:
        count: Number of query heads (H).
        kv_heads: Number of key and value heads (G), each shared by `count / kv_heads` query heads:
            `count` is multi-head, 1 is multi-query, anything between is grouped-query attention.
        key_width: Width of one query or key (K); `dim / count` by default.
        value_width: Width of one value (W); `key_width` by default.
    """

    count: int
    kv_heads: int | None = None
    key_width: int | None = None
    value_width: int | None = None


def check_heads(dim: int, shape: Heads, kv_heads: int) -> None:
    """Refuse widths and kv_heads that do not divide."""
    if min(dim, shape.count, kv_heads, shape.key_width or 1, shape.value_width or 1) < 1:
        raise ValueError(
            f"dim, heads, kv_heads and widths must be at least 1, got {dim} and {shape}"
        )
    if shape.key_width is None and dim % shape.count:
        raise ValueError(
            f"dim must be a multiple of heads: {dim} is not a multiple of {shape.count}; "
            f"change either, or give the heads a key_width"
        )
    if shape.count % kv_heads:
        raise ValueError(
            f"heads must be a multiple of kv_heads: {shape.count} is not a multiple of {kv_heads}; "
            f"change either"
        )


def named_biases(bias: bool | Collection[str]) -> Collection[str]:
    """The names of the projections that add a bias.

    >>> named_biases(True)
    ('q', 'k', 'v', 'out')
    """
    if isinstance(bias, bool):
        return PROJECTIONS if bias else ()
    for name in bias:
        if name not in PROJECTIONS:
            raise ValueError(unknown("projection", name, PROJECTIONS))
    return bias
