"""Rows of symbols, and batches of them: what the small jobs of the tests learn from."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.tasks.task import Loss


@dataclass(frozen=True, slots=True)
class Pairs:
    """What is read and what is to be said, a row each, both padded."""

    source: Tensor
    reads: Layout
    target: Tensor
    writes: Layout
    row_ids: Tensor

    @property
    def tokens(self):
        return self.reads.tokens

    def to(self, device):
        moved = (part.to(device) for part in (self.source, self.reads, self.target, self.writes))
        return Pairs(*moved, self.row_ids.to(device))


def padded(rows) -> tuple[Tensor, Layout]:
    """Rows of numbers as one tensor, with their layout."""
    lengths = [len(row) for row in rows]
    filled = np.zeros((len(rows), max(lengths)), dtype=np.int64)
    for line, row in zip(filled, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(filled), Layout.padded(lengths)


def hide(row, share: float, hidden: int, dice: np.random.Generator):
    """The row with a share of its numbers hidden."""
    return np.where(dice.random(len(row)) < share, hidden, row)


def told(rows: Tensor, layout: Layout) -> Iterable[tuple[Tensor, int]]:
    """Rows with their lengths."""
    return zip(rows, layout.lengths.tolist(), strict=True)


def apart(a: Tensor, b: Tensor, layout: Layout) -> Loss:
    """D(a || b), summed over what is real."""
    log_a, log_b = a.log_softmax(-1), b.log_softmax(-1)
    every = (log_a.exp() * (log_a - log_b)).sum(-1)
    return Loss(every[layout.real].sum(), layout.real.sum().float())


def some_rows(count: int, symbols: int, *, first: int = 0, longest: int = 5) -> list[list[int]]:
    """Rows of 2 to `longest` symbols, all different."""
    dice, rows = np.random.default_rng([count, symbols]), {}
    while len(rows) < count:
        row = dice.integers(first, first + symbols, dice.integers(2, longest + 1)).tolist()
        rows[tuple(row)] = row
    return list(rows.values())
