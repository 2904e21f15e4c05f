"""Batches of texts as tokens, padded or packed, and packs filled up to a fixed shape."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._pytree import register_dataclass

from glassformer.core.layout import Layout
from glassformer.data.jagged import Jagged
from glassformer.tasks.shared.losses import IGNORED

FILLER = 64  # tokens of a filler row at most: short ones cost attention little


class LaidOutBatch:
    """A batch of tensors and layouts: the fields of a dataclass."""

    __slots__ = ()

    @property
    def tokens(self) -> int:
        """How many there are in all layouts, without padding; counted where a batch is made."""
        return sum(x.tokens or 0 for x in self._fields().values() if isinstance(x, Layout))

    def to(self, device: torch.device) -> Any:
        """The same on another device."""
        found = self._fields()
        parts = [x for x in found.values() if isinstance(x, Layout | Tensor)]
        if all(x.device == device for x in parts):
            return self
        layouts = {name: x.to(device) for name, x in found.items() if isinstance(x, Layout)}
        tensors = {
            name: x.to(device, non_blocking=True)
            for name, x in found.items()
            if isinstance(x, Tensor)
        }
        return replace(self, **layouts, **tensors)  # type: ignore[type-var]

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class TextBatch(LaidOutBatch):
    """Rows of tokens, and what is known about each.

    Attributes:
        ids: (B, T) padded or (N,) packed.
        labels: The label of each row, or of each of the positions; `IGNORED` counts nothing.
        row_ids: The row of the split that each label belongs to.
        positions: Where in the batch the labels belong; None where each row has one.
    """

    ids: Int[Tensor, "B T"] | Int[Tensor, " N"]
    layout: Layout
    labels: Tensor
    row_ids: Int[Tensor, " labels"]
    positions: Int[Tensor, " positions"] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows, the longest of them, tokens, and labels at positions; none when padded."""
        if not self.layout.is_packed:
            return ()
        layout = self.layout
        positions = 0 if self.positions is None else len(self.positions)
        return layout.rows, layout.longest, len(self.ids), positions

    def filled(self, sizes: tuple[int, ...]) -> "TextBatch":
        """The same in a fixed shape: filler rows, and labels that are ignored."""
        rows, longest, tokens, positions = sizes
        rows += filler_rows(longest, tokens)
        ids, layout = filled_pack(self.ids, self.layout, rows, longest, tokens)
        if self.positions is None:
            labels = pad_first(self.labels, layout.rows, 0)
            return TextBatch(ids, layout, labels, pad_first(self.row_ids, layout.rows, -1))
        return TextBatch(
            ids,
            layout,
            pad_first(self.labels, positions, IGNORED),
            pad_first(self.row_ids, positions, -1),
            pad_first(self.positions, positions, 0),
        )

    def twice(self) -> "TextBatch":
        """All rows, and then all of them again."""
        positions = self.positions
        if positions is not None:
            positions = torch.cat([positions, positions + self.ids.numel()])
        again = (torch.cat([x, x]) for x in (self.ids, self.labels, self.row_ids))
        ids, labels, row_ids = again
        return TextBatch(ids, self.layout.twice(), labels, row_ids, positions)


register_dataclass(TextBatch)


def filled_pack(
    ids: Int[Tensor, " N"], layout: Layout, rows: int, longest: int, tokens: int
) -> tuple[Int[Tensor, " tokens"], Layout]:
    """A pack and its layout in a fixed shape; the fillers hold token 0."""
    layout = Layout.packed(layout.lengths, longest=longest, budget=tokens, rows=rows)
    return pad_first(ids, tokens, 0), layout


def filler_rows(longest: int, tokens: int) -> int:
    """How many rows can fill a whole pack."""
    return -(-tokens // min(longest, FILLER))


def pad_first(x: Tensor, size: int, value: int) -> Tensor:
    """The tensor with its first axis filled up to a size."""
    return F.pad(x, (0, 0) * (x.ndim - 1) + (0, size - len(x)), value=value)


def row_means(
    vectors: Float[np.ndarray, "pieces D"], rows: Int[np.ndarray, " pieces"], count: int
) -> Float[np.ndarray, "rows D"]:
    """The mean of the vectors of each row.

    >>> row_means(np.array([[1.0], [3.0], [5.0]]), np.array([1, 1, 0]), 2).tolist()
    [[5.0], [2.0]]
    """
    total = np.zeros((count, vectors.shape[1]))
    np.add.at(total, rows, vectors)
    return (total / np.bincount(rows, minlength=count)[:, None]).astype(vectors.dtype)


def text_batch(rows: Jagged, *, packed: bool) -> tuple[Tensor, Layout]:
    """Rows of tokens as one tensor, with their layout."""
    lengths, values = torch.from_numpy(rows.lengths), torch.from_numpy(rows.values).long()
    if packed:
        return values, Layout.packed(lengths)
    layout = Layout.padded(lengths)
    if len(values) == layout.rows * layout.longest:
        return values.view(layout.rows, layout.longest), layout
    ids = torch.zeros(layout.rows, layout.longest, dtype=torch.long)
    return ids.masked_scatter(layout.real, values), layout
