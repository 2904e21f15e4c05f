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
from glassformer.tasks.job import JobTask

TokenRows = Sequence[Int[Tensor, " tokens"]]


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


def pair_rows(task: JobTask[Any, Any, Any]) -> PairRows:
    """The training rows of a job that learns pairs."""
    batch = whole(task)
    inputs = split_up(batch.decoder_input, batch.target_layout)
    lengths = lengths_of(inputs).tolist()
    labels = batch.labels[: sum(lengths)].split(lengths)
    return PairRows(split_up(batch.source, batch.source_layout), inputs, labels)


def text_rows(task: JobTask[Any, Any, Any]) -> TextRows:
    """The training rows of a job that reads texts."""
    batch = whole(task)
    labels = batch.labels if batch.positions is None else None
    return TextRows(split_up(batch.ids, batch.layout), labels)


def whole(task: JobTask[Any, Any, Any]) -> Any:
    """All training rows as one batch, without anything random."""
    return task.batch("train", np.arange(len(task.lengths("train"))), None)


def split_up(tokens: Tensor, layout: Layout) -> TokenRows:
    """The rows of a batch, padded or packed."""
    lengths = layout.lengths[: layout.rows - layout.fillers].tolist()
    if layout.is_packed:
        return tokens[: sum(lengths)].split(lengths)
    return [row[:length] for row, length in zip(tokens, lengths, strict=False)]


def lengths_of(rows: TokenRows) -> Int[np.ndarray, " rows"]:
    """Tokens in each row."""
    return np.array([len(row) for row in rows])


def pad(rows: TokenRows, fill: int, multiple: int) -> Int[Tensor, "B T"]:
    """Rows filled up to the longest, and that to a multiple, which suits kernels."""
    padded = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=fill)
    more = -padded.shape[1] % multiple
    return torch.nn.functional.pad(padded, (0, more), value=fill)
