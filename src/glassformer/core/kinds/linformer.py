"""linformer: softmax attention to a summary of the keys, of one size however many keys there are.

    answer = softmax(q (E k)ᵀ / √K) (F v)        E and F learned, (summary, max_length)

Column p of E and F says what the token at position p gives to each row of the summary, in all heads
alike. Time and memory are linear in the length. Wang et al., 2020.

A row of the summary mixes all positions, so no mask can hide some of them from some queries
(causal least of all), nothing can be added for a distance, and decoding step by step, which looks
only back, has no use for it. Rotary positions are fine: keys are turned by their own positions
before they are summed up, so a score is a mix of scores, each of which knows its distance.
"""

import math
from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.attention import attend, describe
from glassformer.core.caches.base import Cache, Memory
from glassformer.core.heads import Heads
from glassformer.core.kernels.forms import padded
from glassformer.core.layer import AttentionLayer
from glassformer.core.layout import Layout, zero_padding
from glassformer.core.masks import Mask, everything
from glassformer.core.positions import POSITIONS, Position, adds_to_scores, name_of
from glassformer.core.shapes import Answers, Keys, MemoryVectors, Queries, Values, Vectors


class Linformer(AttentionLayer):
    """Attention to `summary` keys and values, called like `MultiHeadAttention`.

    Keys and values in the padding are zeroed before they are summed up. So padding gives nothing,
    however much of it there is: a short row uses the first columns of E and F only, and its answer
    is the same as if it came alone. A row without tokens has a summary of zeros and answers zeros.

    Takes the mask `everything` and positions that do not add to the scores; other masks and
    positions, and every cache, are refused by name.

    Args:
        dim, heads, bias, memory_dim: As of every `AttentionLayer`.
        summary: How many keys and values the sequence is summed up in.
        max_length: The longest sequence; none beyond it can be summed up.
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
            # Summing up max_length unrelated vectors then keeps their size.
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
        return self._look_at(q, self._summed_up(k, v, layout), mask, layout)

    def look_across(self, x: Vectors, memory: Memory, mask: Mask, layout: Layout) -> Answers:
        return self._look_at(self.queries(x), memory, mask, layout)

    def new_cache(self) -> Cache:
        """Refused: a summary has no left and right to decode along."""
        raise ValueError("linformer attention cannot decode; use kind = softmax or linear")

    def keep(self, memory: MemoryVectors, layout: Layout | None = None) -> Memory:
        """The memory's summary, to be looked at many times."""
        kept = super().keep(memory, layout)
        return self._summed_up(kept.k, kept.v, kept.layout)

    def _look_at(self, q: Queries, summary: Memory, mask: Mask, layout: Layout) -> Answers:
        _refuse_mask(mask)
        call = describe(q, summary.k, queries=layout, keys=summary.layout, aligned=False)
        return attend(q, summary.k, summary.v, call)

    def _summed_up(self, k: Keys, v: Values, layout: Layout) -> Memory:
        """The summary of each row: rows of `summary` keys and values, none of them padding."""
        if not layout.fits(self.max_length):
            raise ValueError(
                f"linformer sums up at most {self.max_length} positions, but the batch has "
                f"{int(layout.ends.max())}; shorten the input, or raise max_length and train again"
            )
        k, v, layout = padded(k, layout), padded(v, layout), layout.as_padded()
        return Memory(
            summed_up(k, self.key_summary, layout),
            summed_up(v, self.value_summary, layout),
            Layout.full(layout.rows, self.summary, layout.device),
        )


def summed_up(
    x: Float[Tensor, "B G S K"], weight: Float[Tensor, "summary max_length"], layout: Layout
) -> Float[Tensor, "B G summary K"]:
    """Each row's vectors, weighed by the columns of their positions and added; padding is zero."""
    x = zero_padding(x, layout, axis=2)
    at = layout.positions.clamp(max=weight.shape[1] - 1)  # padding may stand beyond the last
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
            f"linformer cannot go on from a {type(cache).__name__}: its summary is of whole "
            f"sequences; leave the cache out, or use kind = softmax"
        )


def _refuse_position(position: Position | None) -> None:
    if position is not None and adds_to_scores(type(position)):
        fine = [name for name, scheme in POSITIONS.items() if not adds_to_scores(scheme)]
        raise ValueError(
            f"linformer cannot apply {name_of(position)}: a row of its summary stands at no one "
            f"distance; use {', '.join(fine)}, or kind = softmax"
        )


def _check_sizes(summary: int, max_length: int) -> None:
    if summary < 1 or max_length < 1:
        raise ValueError(
            f"summary and max_length must be 1 or more, got {summary} and {max_length}; "
            f"64 rows are a common summary"
        )
