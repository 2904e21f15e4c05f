"""Batches for the peers: rows filled up to one width, on the device before the clock starts.

sorted    rows of similar lengths together, as many as a budget of positions holds
bucketed  the same in few shapes, each of which is compiled for itself
shuffled  as many rows in each batch, at random, filled up to the longest of all
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from glassformer.benchmarks.training.rows import PairRows, TextRows, TokenRows, lengths_of, pad

MULTIPLE = 8  # widths are multiples of this, as tensor cores like them
BUCKETS = (8, 16, 24, 32, 48, 72, 128, 192, 256, 384, 512)  # widths of few shapes
MOST = 256  # batches
IGNORED = -100  # the label that cross-entropy leaves out

RowNumbers = Int[np.ndarray, " _"]
Chosen = Sequence[tuple[RowNumbers, int]]  # the rows of each batch, and its width at least
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """The arguments of a model that returns its loss, and the real tokens that count."""

    inputs: tuple[Tensor, ...]
    tokens: int


def sorted_rows(lengths: Sequence[Int[np.ndarray, " rows"]], budget: int) -> Chosen:
    """Batches of similar rows, whose sides together have at most `budget` positions, padded.

    Args:
        lengths: Of each side, the last one sorted by first.
    """
    order = np.lexsort(lengths)
    widths = np.stack([-(-side[order] // MULTIPLE) * MULTIPLE for side in lengths], 1).tolist()
    batches, start, widest = [], 0, [0] * len(lengths)
    for at, width in enumerate(widths):
        widest = list(map(max, widest, width))
        if at > start and (at + 1 - start) * sum(widest) > budget:
            batches.append((order[start:at], 0))
            start, widest = at, width
    batches.append((order[start:], 0))
    return mixed(batches)


def bucketed_rows(lengths: Sequence[Int[np.ndarray, " rows"]], budget: int) -> Chosen:
    """Full batches of similar rows, all sides as wide; one of each shape comes first."""
    longest = np.max(lengths, axis=0)
    order, start = np.argsort(-longest, kind="stable"), 0
    batches: dict[int, list[tuple[RowNumbers, int]]] = {}
    while start < len(order):
        tokens = int(longest[order[start]])
        width = next((bucket for bucket in BUCKETS if bucket >= tokens), tokens)
        rows = max(1, budget // (width * len(lengths)))
        if start + rows <= len(order):
            batches.setdefault(width, []).append((order[start : start + rows], width))
        start += rows
    first = [some.pop() for some in batches.values()]
    return [*first, *mixed([batch for some in batches.values() for batch in some])]


def shuffled_rows(rows: int, per_batch: int, width: int) -> Chosen:
    """Batches of so many rows each; those left over are left out."""
    order = np.random.default_rng(0).permutation(rows)
    starts = range(0, rows - per_batch + 1, per_batch)
    return [(order[at : at + per_batch], width) for at in starts][:MOST]


def mixed(batches: Chosen) -> Chosen:
    """Short and long ones at random, as many as are kept."""
    return [batches[at] for at in np.random.default_rng(0).permutation(len(batches))[:MOST]]


def pair_batches(rows: PairRows, chosen: Chosen, device: torch.device) -> list[PaddedBatch]:
    """Sources and their padding, decoder inputs, labels."""
    found = []
    for numbers, width in chosen:
        source, padding = padded(pick(rows.sources, numbers), width)
        inputs, _ = padded(pick(rows.inputs, numbers), width)
        labels, _ = padded(pick(rows.labels, numbers), width, IGNORED)
        tensors = tuple(x.to(device) for x in (source, padding, inputs, labels))
        found.append(PaddedBatch(tensors, int(rows.counts[numbers].sum())))
    return found


def text_batches(rows: TextRows, chosen: Chosen, device: torch.device) -> list[PaddedBatch]:
    """Texts, their padding, and their labels."""
    assert rows.labels is not None
    found = []
    for numbers, width in chosen:
        ids, padding = padded(pick(rows.texts, numbers), width)
        labels = rows.labels[torch.from_numpy(numbers)]
        tensors = tuple(x.to(device) for x in (ids, padding, labels))
        found.append(PaddedBatch(tensors, int(rows.counts[numbers].sum())))
    return found


def gap_batches(
    rows: TextRows, chosen: Chosen, share: float, device: torch.device
) -> list[PaddedBatch]:
    """Texts, their padding, the places of a share of their tokens, and what is hidden there."""
    rng, found = np.random.default_rng(0), []
    for numbers, width in chosen:
        ids, padding = padded(pick(rows.texts, numbers), width)
        real = (~padding).flatten().nonzero().flatten()
        gaps = rng.choice(len(real), round(share * len(real)), replace=False)
        places = real[torch.from_numpy(gaps)]
        labels = ids.flatten()[places]
        tensors = tuple(x.to(device) for x in (ids, padding, places, labels))
        found.append(PaddedBatch(tensors, len(real)))
    return found


def padded(rows: TokenRows, width: int, filler: int = 0) -> tuple[Tensor, Tensor]:
    """The rows side by side, and where they are padding, as torch.nn has it: True is padding."""
    ids = pad(rows, filler, MULTIPLE)
    ids = F.pad(ids, (0, max(0, width - ids.shape[1])), value=filler)
    lengths = torch.from_numpy(lengths_of(rows))
    return ids, torch.arange(ids.shape[1])[None] >= lengths[:, None]


def pick(items: Sequence[Item], numbers: RowNumbers) -> list[Item]:
    """Some of the items."""
    return [items[number] for number in numbers.tolist()]
