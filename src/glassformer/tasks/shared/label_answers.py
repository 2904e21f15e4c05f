"""A classifier's answers to many inputs, gathered from batches of their pieces."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from glassformer import processes
from glassformer.errors import NonFiniteScoresError
from glassformer.metrics.calibration import Labels, Logits, Probabilities, to_probabilities
from glassformer.metrics.classification import (
    THRESHOLD,
    Threshold,
    choose_threshold,
    classification_scores,
    f1_counts,
    macro_f1,
    predicted_classes,
    right_rows,
)
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison, classification_comparison
from glassformer.metrics.units import ROWS, Units

LARGEST = 1e30  # of logits; dividing a larger one by a temperature could overflow

Piece = tuple[Float[Tensor, "B C"], Tensor, Shaped[Tensor, " B"]]  # logits, labels, row_ids


@runtime_checkable
class SecondPart(Protocol):
    """A second part of a model: what it says about the same inputs.

    Attributes:
        threshold_without: The threshold of the first part by itself.
    """

    @property
    def threshold_without(self) -> float: ...

    def mixed_with(self, first: Logits) -> Logits:
        """The logits of both parts together."""


@dataclass(frozen=True, eq=False, slots=True)
class ClassAnswers:
    """The logits of each text, and its true labels: one (N,), or 0 and 1 (N, C).

    For a text in pieces, the logits give the mean of the pieces' probabilities.

    Attributes:
        raw: The model's logits, before calibration.
        temperature: What logits are divided by.
        rows: The number of each text in its split, where it has one.
        ngrams: What n-grams add, where they are part of the model.
        threshold: From which probability on a label is predicted, where a text may have several.
        units: What the texts are sampled by.
    """

    raw: Logits
    labels: Labels
    temperature: float = 1.0
    rows: Int[np.ndarray, " N"] | None = None
    ngrams: SecondPart | None = None
    threshold: Threshold = THRESHOLD
    units: Units = ROWS

    @classmethod
    def gather(
        cls,
        pieces: Iterable[Piece],
        *,
        multi: bool,
        temperature: float = 1.0,
        threshold: float = THRESHOLD,
    ) -> "ClassAnswers":
        """The answers of all pieces, combined by row, in the order of the row_ids."""
        logits, labels, row_ids = (
            processes.gathered(torch.cat(parts) if len(parts) > 1 else parts[0]).cpu()
            for parts in zip(*_some(pieces), strict=True)
        )
        gathered, owner = logits.float().numpy(), row_ids.numpy()
        if not np.abs(gathered).max() <= LARGEST:  # written this way, it refuses NaN, too
            raise NonFiniteScoresError(
                "the model's scores are not finite: its training diverged or its weights are "
                "damaged; train with a lower learning rate, or copy the run again"
            )
        label_ids = labels.numpy().astype(np.int64)
        if (owner[1:] > owner[:-1]).all():  # one piece of each text, in order
            return cls(gathered, label_ids, temperature, owner, threshold=threshold)
        texts, first, counts = np.unique(owner, return_index=True, return_counts=True)
        if len(texts) < len(owner):
            voted = _votes(gathered, np.searchsorted(texts, owner), counts, multi)
            gathered = np.where(counts[:, None] == 1, gathered[first], voted.astype(np.float32))
        else:
            gathered = gathered[first]
        return cls(gathered, label_ids[first], temperature, texts, threshold=threshold)

    @classmethod
    def of_probabilities(
        cls, probabilities: Probabilities, labels: Labels, threshold: float = THRESHOLD
    ) -> "ClassAnswers":
        """Answers of a system that gives probabilities."""
        safe = np.clip(probabilities, 1e-30, 1 - 1e-12 if labels.ndim == 2 else 1.0)
        logits = np.log(safe) - (np.log1p(-safe) if labels.ndim == 2 else 0.0)
        return cls(logits.astype(np.float32), labels.astype(np.int64), threshold=threshold)

    @property
    def logits(self) -> Logits:
        """The logits at the temperature, with those of the n-grams."""
        alone = self.raw / np.float32(self.temperature)
        if self.ngrams is None:
            return alone
        return self.ngrams.mixed_with(alone).astype(np.float32)

    @property
    def multi(self) -> bool:
        """Whether a text has any number of labels."""
        return self.labels.ndim == 2

    def at(self, temperature: float) -> "ClassAnswers":
        """The same answers at another temperature."""
        return replace(self, temperature=temperature)

    def without_ngrams(self) -> "ClassAnswers":
        """The answers of the model alone, at its own threshold."""
        if self.ngrams is None:
            return self
        return replace(self, ngrams=None, threshold=self.ngrams.threshold_without)

    def probabilities(self) -> Probabilities:
        """The probability of each label for each text."""
        return to_probabilities(self.logits, multi_label=self.multi)

    def predictions(self) -> Labels:
        """The predicted labels, in the form of the true ones."""
        return predicted_classes(self.labels, self.probabilities(), self.threshold)

    def at_best_threshold(self) -> "ClassAnswers":
        """Copy these answers with the threshold that scores best on their own rows."""
        return replace(self, threshold=choose_threshold(self.labels, self.probabilities()))

    def right(self) -> Shaped[np.ndarray, " N"]:
        """Which texts have all their labels right."""
        return right_rows(self.labels, self.predictions())

    def accuracy(self) -> float:
        """The share of texts with all labels right."""
        return float(self.right().mean())

    def macro_f1(self) -> float:
        """The mean F1 of the labels."""
        parts = f1_counts(self.labels, self.predictions(), self.logits.shape[1])
        return float(macro_f1(*(part.sum(axis=0, keepdims=True, dtype=float) for part in parts))[0])

    def scores(self) -> dict[str, Score]:
        """Scores with intervals."""
        return classification_scores(self.labels, self.probabilities(), self.threshold, self.units)

    def compared_with(self, other: "ClassAnswers") -> dict[str, Comparison]:
        """How much better these are than the other's, on the same texts."""
        both = self.probabilities(), other.probabilities()
        thresholds = self.threshold, other.threshold
        return classification_comparison(self.labels, *both, thresholds, self.units)


def _some(pieces: Iterable[Piece]) -> list[Piece]:
    found = list(pieces)
    if not found:
        raise ValueError("there are no batches; give at least one")
    return found


def _votes(
    logits: Float[np.ndarray, "P C"],
    text: Shaped[np.ndarray, " P"],
    counts: Shaped[np.ndarray, " N"],
    multi: bool,
) -> Probabilities:
    """Logits that give the mean probabilities of each text's pieces."""
    mean = np.zeros((len(counts), logits.shape[1]))
    np.add.at(mean, text, to_probabilities(logits, multi_label=multi))
    mean = np.clip(mean / counts[:, None], 1e-30, 1 - 1e-7 if multi else 1)
    return np.log(mean) - np.log1p(-mean) if multi else np.log(mean)
