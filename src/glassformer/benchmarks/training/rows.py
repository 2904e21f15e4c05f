"""The rows of a run, as the batches of its task hold them: what the peers learn from, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.tasks.task import Task

TokenRows = Sequence[Int[Tensor, " _"]]  # no name: rows have different lengths


@dataclass(frozen=True)
class PairRows:
    """What is read, what is written so far, and what comes next."""

    sources: TokenRows
    inputs: TokenRows
    labels: TokenRows

    @cached_property
    def counts(self) -> Int[np.ndarray, " rows"]:
        """Target tokens of each row."""
        return lengths_of(self.labels)


@dataclass(frozen=True)
class TextRows:
    """Texts, and the label of each; None where labels are hidden tokens."""

    texts: TokenRows
    labels: Int[Tensor, " rows"] | None

    @cached_property
    def counts(self) -> Int[np.ndarray, " rows"]:
        """Tokens of each row."""
        return lengths_of(self.texts)


def pair_rows(task: Task[Any, Any]) -> PairRows:
    """The training rows of a job that learns pairs."""
    batch = whole(task)
    inputs = split_up(batch.decoder_input, batch.target_layout)
    lengths = lengths_of(inputs).tolist()
    labels = batch.labels[: sum(lengths)].split(lengths)
    sources = split_up(batch.source, batch.source_layout)
    check(task, sum(lengths) + int(lengths_of(sources).sum()))
    return PairRows(sources, inputs, labels)


def text_rows(task: Task[Any, Any]) -> TextRows:
    """The training rows of a job that reads texts."""
    batch = whole(task)
    labels = batch.labels if batch.positions is None else None
    rows = TextRows(split_up(batch.ids, batch.layout), labels)
    check(task, int(rows.counts.sum()))
    return rows


def check(task: Task[Any, Any], tokens: int) -> None:
    """All sides must learn from the same tokens."""
    expected = int(task.lengths("train").sum())
    if tokens != expected:
        raise ValueError(f"the batches of the task hold {tokens:,} tokens of {expected:,}")


def whole(task: Task[Any, Any]) -> Any:
    """All training rows as one batch, without anything random."""
    return task.batch("train", np.arange(len(task.lengths("train"))), None)


def split_up(tokens: Tensor, layout: Layout) -> TokenRows:
    """The rows of a batch, padded or packed."""
    lengths = layout.lengths.tolist()
    rows: TokenRows = tokens.split(lengths) if layout.is_packed else list(tokens)
    found = [row[:length] for row, length in zip(rows, lengths, strict=True)]
    if layout.fillers is None:
        return found
    return [row for row, fills in zip(found, layout.fillers.tolist(), strict=True) if not fills]


def lengths_of(rows: TokenRows) -> Int[np.ndarray, " rows"]:
    """Tokens in each row."""
    return np.array([len(row) for row in rows])


def pad(rows: TokenRows, fill: int, multiple: int) -> Int[Tensor, "B T"]:
    """Rows filled up to the longest, and that to a multiple, which suits kernels."""
    padded = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=fill)
    more = -padded.shape[1] % multiple
    return torch.nn.functional.pad(padded, (0, more), value=fill)
