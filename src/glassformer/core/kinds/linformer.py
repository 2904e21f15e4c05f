"""linformer: softmax attention to a summary of the keys, of fixed size at any length.

    answer = softmax(q (E k)ᵀ / √K) (F v)        E and F learned, (summary, max_length)

Column p of E and F is what the token at position p contributes to each row of the summary, the same
for all heads. Time and memory are linear in the length. Wang et al., 2020.

A row of the summary mixes all positions, so no mask can hide some of them from some queries
(least of all a causal one), scores cannot depend on a distance, and step-by-step decoding, which
looks only back, is impossible. Rotary positions work: keys are rotated by their own positions
before they are summed, so a score is a mix of scores that each depend on a distance.
"""

import math
from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.attention import attend, describe
from glassformer.core.caches.base import Cache, Memory
from glassformer.core.heads import Heads
from glassformer.core.kernels import Call
from glassformer.core.kernels.forms import padded
from glassformer.core.kernels.plain import attention_weights
from glassformer.core.layer import AttentionLayer
from glassformer.core.layout import Layout, zero_padding
from glassformer.core.masks import Mask, everything
from glassformer.core.positions import POSITIONS, Position, adds_to_scores, name_of
from glassformer.core.shapes import Answers, Keys, MemoryVectors, Queries, Values, Vectors


class Linformer(AttentionLayer):
    """Attention to `summary` keys and values, called like `MultiHeadAttention`.

    Keys and values in the padding are zeroed before they are summed, so padding contributes
    nothing: a short row uses only the first columns of E and F, and its answer is the same as if it
    were alone in the batch. A row without tokens has a summary of zeros and an answer of zeros.

    Supports the mask `everything` and positions that do not add to the scores; other masks and
    positions, and every cache, are refused.

    Args:
        dim, heads, bias, memory_dim: As of every `AttentionLayer`.
        summary: Number of keys and values in the summary.
        max_length: Longest sequence that can be summarised.
    """

    def __init__(
        self,
        dim: int,
        heads: int | Heads,
        *,
        summary: int,
        max_length: int,
        bias: bool | Collection[str] = False,
        memory_dim: int | None = None,
    ) -> None:
        _check_sizes(summary, max_length)
        super().__init__(dim, heads, bias=bias, memory_dim=memory_dim)
        self.summary, self.max_length = summary, max_length
        self.key_summary = nn.Parameter(torch.empty(summary, max_length))  # E
        self.value_summary = nn.Parameter(torch.empty(summary, max_length))  # F
        for weight in (self.key_summary, self.value_summary):
            # The sum of max_length unrelated vectors then keeps their scale.
            nn.init.normal_(weight, std=1 / math.sqrt(max_length))

    def look_around(
        self,
        x: Vectors,
        mask: Mask,
        position: Position | None,
        cache: Cache | None,
        layout: Layout,
    ) -> Answers:
        _refuse_cache(cache)
        _refuse_position(position)
        q, (k, v) = self.queries(x), self.keys_and_values(x)
        if position is not None:
            q, k = position.turn(q, k, layout)
        return self._attend(q, self._summarise(k, v, layout), mask, layout)

    def look_across(self, x: Vectors, memory: Memory, mask: Mask, layout: Layout) -> Answers:
        return self._attend(self.queries(x), memory, mask, layout)

    def new_cache(self) -> Cache:
        """Refused: a summary has no order to decode along."""
        raise ValueError("linformer attention cannot decode; use kind = softmax or linear")

    def keep(self, memory: MemoryVectors, layout: Layout | None = None) -> Memory:
        """The memory's summary, computed once for many calls."""
        kept = super().keep(memory, layout)
        return self._summarise(kept.k, kept.v, kept.layout)

    def _attend(self, q: Queries, summary: Memory, mask: Mask, layout: Layout) -> Answers:
        _refuse_mask(mask)
        call = describe(q, summary.k, queries=layout, keys=summary.layout, aligned=False)
        return self.attend(q, summary.k, summary.v, call)

    def attend(
        self, q: Queries, k: Keys, v: Values, call: Call, cache: Cache | None = None
    ) -> Answers:
        return attend(q, k, v, call)

    def weigh(
        self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G summary K"], call: Call
    ) -> Float[Tensor, "B H T summary"]:
        """The weights of the summary's values."""
        return attention_weights(q, k, call)

    def _summarise(self, k: Keys, v: Values, layout: Layout) -> Memory:
        """The summary of each row: `summary` keys and values, none of them padding."""
        if not layout.fits(self.max_length):
            raise ValueError(
                f"linformer summarises at most {self.max_length} positions, but the batch has "
                f"{int(layout.ends.max())}; shorten the input, or raise max_length and train again"
            )
        k, v, layout = padded(k, layout), padded(v, layout), layout.as_padded()
        return Memory(
            summarise(k, self.key_summary, layout),
            summarise(v, self.value_summary, layout),
            Layout.full(layout.rows, self.summary, layout.device),
        )


def summarise(
    x: Float[Tensor, "B G S K"], weight: Float[Tensor, "summary max_length"], layout: Layout
) -> Float[Tensor, "B G summary K"]:
    """The sum of each row's vectors, weighted by the columns of their positions."""
    x = zero_padding(x, layout, axis=2)
    at = layout.positions.clamp(max=weight.shape[1] - 1)  # padding may lie beyond the last
    return torch.einsum("mbs,bgsk->bgmk", weight[:, at], x)


def _refuse_mask(mask: Mask) -> None:
    if mask.band != everything.band:
        raise ValueError(
            f"linformer cannot apply {mask}: each row of its summary mixes all positions, future "
            f"ones too; use everything, or kind = softmax"
        )


def _refuse_cache(cache: Cache | None) -> None:
    if cache is not None:
        raise ValueError(
            f"linformer cannot continue from a {type(cache).__name__}: it summarises whole "
            f"sequences; leave the cache out, or use kind = softmax"
        )


def _refuse_position(position: Position | None) -> None:
    if position is not None and adds_to_scores(type(position)):
        supported = [name for name, scheme in POSITIONS.items() if not adds_to_scores(scheme)]
        raise ValueError(
            f"linformer cannot apply {name_of(position)}: a row of its summary has no "
            f"position of its own; use {', '.join(supported)}, or kind = softmax"
        )


def _check_sizes(summary: int, max_length: int) -> None:
    if summary < 1 or max_length < 1:
        raise ValueError(
            f"summary and max_length must be 1 or more, got {summary} and {max_length}; "
            f"64 is a common summary size"
        )
