"""Batches of windows: what is read, and what comes next at each place."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils._pytree import register_dataclass

from glassformer.core.layout import Layout
from glassformer.tasks.generate.stream import Numbers, Windows
from glassformer.tasks.shared.batches import filled_pack, filler_rows, pad_first
from glassformer.tasks.shared.losses import IGNORED


@dataclass(frozen=True, slots=True)
class WindowBatch:
    """Pieces of documents, packed; none sees another.

    Attributes:
        labels: What comes next at each place; `IGNORED` counts nothing.
        documents: The document of each place, for evaluation; None while training.
        bytes: Likewise the bytes of text of what comes next.
    """

    ids: Int[Tensor, " N"]
    layout: Layout
    labels: Int[Tensor, " N"]
    documents: Int[Tensor, " N"] | None = None
    bytes: Int[Tensor, " N"] | None = None

    @property
    def tokens(self) -> int:
        """How many there are."""
        assert self.layout.tokens is not None  # made on the CPU, where they are counted
        return self.layout.tokens

    def to(self, device: torch.device) -> "WindowBatch":
        """The same on another device."""
        return WindowBatch(
            self.ids.to(device, non_blocking=True),
            self.layout.to(device),
            self.labels.to(device, non_blocking=True),
            self.documents,
            self.bytes,
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Pieces, the longest of them, and tokens."""
        return self.layout.rows, self.layout.longest, len(self.ids)

    def filled(self, sizes: tuple[int, ...]) -> "WindowBatch":
        """The same in a fixed shape: filler rows, whose labels are ignored."""
        rows, longest, tokens = sizes
        rows += filler_rows(longest, tokens)
        ids, layout = filled_pack(self.ids, self.layout, rows, longest, tokens)
        return WindowBatch(ids, layout, pad_first(self.labels, tokens, IGNORED))

    def twice(self) -> "WindowBatch":
        """All pieces, and then all of them again."""
        ids, labels = (torch.cat([x, x]) for x in (self.ids, self.labels))
        return WindowBatch(ids, self.layout.twice(), labels)


register_dataclass(WindowBatch)


def window_batch(
    found: Windows, documents: Numbers | None = None, sizes: Numbers | None = None
) -> WindowBatch:
    """Windows as a batch."""
    return WindowBatch(
        torch.from_numpy(found.ids),
        Layout.packed(torch.from_numpy(found.lengths)),
        torch.from_numpy(found.labels),
        None if documents is None else torch.from_numpy(documents),
        None if sizes is None else torch.from_numpy(sizes),
    )
