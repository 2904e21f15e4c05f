"""SASRec: a decoder reads the items of a user in order and predicts the next one at each place.

Kang and McAuley, "Self-Attentive Sequential Recommendation", 2018. Items are scored by the same
vectors that they are read by. Here all items are scored against each other, by softmax, instead of
each against one other.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.config import ModelConfig
from glassformer.core.layout import Layout
from glassformer.models.build import build_language_model
from glassformer.models.transformer import LanguageModel, Noise
from glassformer.tasks.recommend.interactions import Interactions
from glassformer.tasks.recommend.questions import QuestionBatch, Questions
from glassformer.tasks.shared.losses import token_divergence, token_loss
from glassformer.tasks.task import Loss

START = 0  # read before the first item; item n is token n + 1


@dataclass(frozen=True, slots=True)
class SequenceBatch:
    """The items of some users, packed, and the next item at each place."""

    ids: Int[Tensor, " N"]
    labels: Int[Tensor, " N"]
    layout: Layout

    @property
    def tokens(self) -> int:
        """How many places there are."""
        return len(self.ids)

    def to(self, device: torch.device) -> "SequenceBatch":
        """The same on another device."""
        return SequenceBatch(self.ids.to(device), self.labels.to(device), self.layout.to(device))


class Sequences:
    """The training rows of each user in order, in windows."""

    def __init__(self, found: Interactions, rows: Int[np.ndarray, " train"], width: int) -> None:
        order = found.sorted_rows(rows)
        self.tokens = found.items[order].astype(np.int64) + 1
        owners = found.users[order]
        place = np.arange(len(order)) - np.searchsorted(owners, owners)
        self.before = np.where(place == 0, START, np.roll(self.tokens, 1))
        self.starts = np.flatnonzero(place % width == 0)
        self.lengths = np.diff(self.starts, append=len(order))

    def take(self, rows: Int[np.ndarray, " _"]) -> SequenceBatch:
        """Some windows."""
        places = np.concatenate([np.arange(self.lengths[n]) + self.starts[n] for n in rows])
        return SequenceBatch(
            torch.from_numpy(self.before[places]),
            torch.from_numpy(self.tokens[places]),
            Layout.packed(torch.from_numpy(self.lengths[rows])),
        )


class SasRec:
    """How a decoder is learned and used."""

    default_epochs = 30.0

    def __init__(self, config: ModelConfig, items: int, width: int) -> None:
        self.config, self.items, self.width = config, items, width

    def model(self) -> LanguageModel:
        """A model with fresh weights."""
        return build_language_model(self.config, vocabulary=self.items + 1)

    def forward(
        self, model: nn.Module, batch: SequenceBatch, noise: Noise | None
    ) -> Float[Tensor, "N V"]:
        """The score of each next item."""
        return model(batch.ids, layout=batch.layout, noise=noise)

    def loss(self, output: Float[Tensor, "N V"], batch: SequenceBatch) -> Loss:
        """The cross-entropy of the next items."""
        return token_loss(output, batch.labels)

    def divergence(
        self, a: Float[Tensor, "N V"], b: Float[Tensor, "N V"], batch: SequenceBatch
    ) -> Loss:
        """Between the chances of the next items."""
        return token_divergence(a, b, batch.labels)

    def question_lengths(self, counts: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
        """The places that are read for each question, given the items known before."""
        return np.minimum(counts + 1, self.width)

    def scores(self, model: nn.Module, batch: QuestionBatch) -> Float[Tensor, "Q I"]:
        """The score of every item for each question."""
        read = [self._read(one) for one in batch.users]
        ids = torch.from_numpy(np.concatenate([tokens for tokens, _ in read]))
        lengths = np.array([len(tokens) for tokens, _ in read])
        starts = np.cumsum(lengths) - lengths
        places = np.concatenate(
            [start + asked for start, (_, asked) in zip(starts, read, strict=True)]
        )
        layout = Layout.packed(torch.from_numpy(lengths)).to(batch.device)
        found = model(ids.to(batch.device), layout=layout)
        return found[torch.from_numpy(places).to(batch.device), 1:]

    def _read(self, asked: Questions) -> tuple[Int[np.ndarray, " _"], Int[np.ndarray, " _"]]:
        """What is read for the questions of a user, and the place that answers each."""
        items = asked.items[:-1] if asked.timed else asked.items[:0]
        known = items >= 0
        tokens = np.concatenate([[START], asked.history.items + 1, items[known] + 1])
        last = len(tokens) - 1 - int(known.sum())
        places = last + np.concatenate([[0], np.cumsum(known)])
        if not asked.timed:
            places = np.full(len(asked), last)
        kept = tokens[-self.width :].astype(np.int64)
        return kept, places - (len(tokens) - len(kept))

    def vectors(self, model: nn.Module) -> Float[np.ndarray, "I D"]:
        """The vector of each item."""
        return model.tokens.table.weight[1:].detach().float().cpu().numpy()  # type: ignore[union-attr,index]

    def features(self, model: nn.Module) -> Float[np.ndarray, "I D"]:
        """The same in their principal directions, the largest first."""
        vectors = self.vectors(model)
        vectors = vectors - vectors.mean(0)
        return vectors @ np.linalg.svd(vectors, full_matrices=False)[2].T
