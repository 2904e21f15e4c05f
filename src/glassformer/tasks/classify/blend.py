"""How much of a label's score comes from the model, and how much from n-grams.

    logits = model · logits of the model + ngrams · logits of the n-grams

Both are fitted to the training rows, each by itself, and the two weights to the validation rows,
by log loss. What they gain is judged by cross-fitting: every validation row is scored with weights
that the others gave, so that no row is used twice. Wolpert, "Stacked generalization", 1992.

Which of the three answers, the network, the n-grams or both, is chosen by the score that is
reported: accuracy, with micro-F1 where a text may have several labels, each system at its own
threshold. It is noisy with few rows, so only a difference of more than one standard error decides;
between systems that are closer, log loss does. If the n-grams gain nothing, the network answers
alone; if it makes them clearly worse, they do. They also do where validation rows are too few to
tell: then training rows are mostly few, too, from which a linear model learns more than a network.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from glassformer.config.values import fitting
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.metrics.calibration import (
    Labels,
    Logits,
    log_loss,
    row_losses,
    to_probabilities,
)
from glassformer.metrics.classification import (
    THRESHOLD,
    choose_threshold,
    f1_counts,
    predicted_classes,
    right_rows,
)

RECORD = "ngrams.json"
CHECKSUMS = "checksums.json"  # of the files that a finished run has
FEW = 10  # validation rows; fewer cannot tell
TOO_FEW = (
    f"Fewer than {FEW} rows cannot decide between them; a linear model learns more from few rows. "
)
FOLDS = 10
PRIOR = 1.0  # how many rows the first guess counts for
STEPS, HALVINGS, CLOSE = 50, 20, 1e-6

Weights = Float[np.ndarray, " 2"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Blend:
    """The weights of the two parts.

    Attributes:
        kept: Whether the n-grams are part of the model.
        sentence: Why, in the words of a report.
        threshold: From which probability on a label is predicted, where a text may have several.
        network_threshold: That of the network alone.
    """

    model: float
    ngrams: float
    kept: bool
    sentence: str
    threshold: float = THRESHOLD
    network_threshold: float = THRESHOLD

    def mixed(self, model: Logits, ngrams: Logits) -> Logits:
        """The logits of both parts together."""
        return self.model * model + self.ngrams * ngrams

    def save(self, folder: Path) -> None:
        """Write one JSON file."""
        write_json(asdict(self), folder / RECORD)

    @classmethod
    def load(cls, folder: Path) -> "Blend | None":
        """What `save` wrote; None if nothing was decided."""
        path = folder / RECORD
        if not path.exists():
            refuse_lost(folder)
            return None
        try:
            return fitting(cls, read_json(path), "it")
        except (OSError, ValueError, GlassformerError) as error:
            raise GlassformerError(
                f"{path}: not the n-gram part of a run ({error}); copy the run again"
            ) from None

    @classmethod
    def fit(
        cls,
        model: Logits,
        ngrams: Logits,
        labels: Labels,
        *,
        always: bool,
        threshold: float | None = None,
    ) -> "Blend":
        """The weights that suit the validation rows, and whether the n-grams are worth keeping.

        A tie between n-grams and both goes to both, which is mostly better on other rows
        (docs/dev/log.md).

        Args:
            always: Keep the n-grams whatever they gain.
            threshold: For all systems; by default, what suits each.
        """
        parts = model.astype(np.float64), ngrams.astype(np.float64)
        logits = *parts, cross_fitted(parts, labels)
        network, counts, both = (System.of(each, labels, threshold) for each in logits)
        few = len(labels) < FEW
        rival = counts if counts.beats(both) else both
        kept = always or few or rival.beats(network, tie=min(counts.loss, both.loss) < network.loss)
        harmed = few or counts.beats(
            both, tie=both.loss >= network.loss or worse_than(both.logits, counts.logits, labels)
        )
        alone = kept and harmed and not always
        weights = np.array([0.0, 1.0]) if alone else fit_weights(parts, labels)
        outcome = "n-grams alone" if alone else "both" if kept else "the network alone"
        sentence = (
            f"{network.measures} on validation rows: network {network}, n-grams {counts}, both "
            f"{both}. {TOO_FEW if few and alone else ''}Predictions come from {outcome}."
        )
        return cls(
            model=float(weights[0]),
            ngrams=float(weights[1]),
            kept=kept,
            sentence=sentence,
            threshold=(counts if alone else both if kept else network).threshold,
            network_threshold=network.threshold,
        )


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """How well one of the three does on the validation rows.

    Attributes:
        threshold: From which probability on it predicts one of several labels.
        loss: The log loss.
        scores: The reported scores: accuracy, with micro-F1 where a text may have several labels.
        quality: What each row adds to their sum, as a mean over rows.
    """

    logits: Logits
    threshold: float
    loss: float
    scores: tuple[float, ...]
    quality: Float[np.ndarray, " N"]

    @classmethod
    def of(cls, logits: Logits, labels: Labels, threshold: float | None) -> "System":
        """Measure a system by its logits."""
        multi = labels.ndim == 2
        chances = to_probabilities(logits, multi_label=multi)
        if threshold is None:
            threshold = choose_threshold(labels, chances)
        given = predicted_classes(labels, chances, threshold)
        quality = right_rows(labels, given).astype(float)
        scores: tuple[float, ...] = (float(quality.mean()),)
        if multi:
            hits, named = (x.sum(axis=1) for x in f1_counts(labels, given, labels.shape[1]))
            micro = 2 * hits.sum() / max(1, named.sum())
            quality += micro + (2 * hits - micro * named) / max(1e-9, named.mean())
            scores = (*scores, float(micro))
        return cls(logits, threshold, log_loss(logits, labels), scores, quality)

    def beats(self, other: "System", *, tie: bool = False) -> bool:
        """Whether its reported scores are better, by more than one standard error.

        Args:
            tie: The answer where the difference is smaller.
        """
        more = self.quality - other.quality
        apart = more.std() / len(more) ** 0.5
        return tie if abs(more.mean()) <= apart else bool(more.mean() > 0)

    @property
    def measures(self) -> str:
        """The names of the numbers that stand for it in a sentence."""
        return (
            "Accuracy, micro-F1 and log loss" if len(self.scores) > 1 else "Accuracy and log loss"
        )

    def __str__(self) -> str:
        *first, last = (f"{number:.3f}" for number in (*self.scores, self.loss))
        return f"{', '.join(first)} and {last}"


@dataclass(frozen=True, eq=False, slots=True)
class NgramPart:
    """The n-grams' share in some answers: their logits, and how they are blended."""

    logits: Logits
    blend: Blend

    @property
    def threshold_without(self) -> float:
        """Threshold of the network alone."""
        return self.blend.network_threshold

    def mixed_with(self, first: Logits) -> Logits:
        """The logits of both parts together."""
        return self.blend.mixed(first, self.logits)


def refuse_lost(folder: Path) -> None:
    """Refuse a run that has lost the record: without its n-grams it would be another model."""
    try:
        known = read_json(folder / CHECKSUMS)
    except (OSError, ValueError):  # a run that is being trained, or of an older version
        return
    if RECORD in known:
        raise GlassformerError(f"{folder}: the files of its n-grams are gone; copy the run again")


def cross_fitted(parts: Sequence[Logits], labels: Labels) -> Logits:
    """The logits of both parts together, each row by the weights that other rows gave."""
    fold, found = np.arange(len(labels)) % FOLDS, np.zeros_like(parts[0])
    for number in np.unique(fold):
        mine = fold == number
        weights = fit_weights([part[~mine] for part in parts], labels[~mine])
        found[mine] = sum(w * part[mine] for w, part in zip(weights, parts, strict=True))
    return found


def worse_than(first: Logits, second: Logits, labels: Labels) -> bool:
    """Whether the first has a larger log loss, by more than one standard error."""
    more = row_losses(first, labels) - row_losses(second, labels)
    return bool(more.mean() > more.std() / len(more) ** 0.5)


def fit_weights(parts: Sequence[Logits], labels: Labels) -> Weights:
    """The weights, none below zero, with the least log loss; half and half without rows."""
    free = np.array([True, True])
    while True:
        weights = newton(parts, labels, free)
        if (weights >= 0).all():
            return weights
        free &= weights > 0


def newton(
    parts: Sequence[Logits], labels: Labels, free: Float[np.ndarray, " 2"] | np.ndarray
) -> Weights:
    """Newton's method over the weights that are free; the others are 0. The loss is convex."""
    weights = np.where(free, 0.5, 0.0)
    loss = penalised(weights, parts, labels)
    for _ in range(STEPS):
        slope, curvature = derivatives(weights, parts, labels)
        step = np.zeros(2)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        for _ in range(HALVINGS):
            tried = penalised(weights - step, parts, labels)
            if tried <= loss:
                break
            step /= 2
        else:
            return weights
        weights, loss = weights - step, tried
        if np.abs(step).max() < CLOSE:
            return weights
    return weights


def penalised(weights: Weights, parts: Sequence[Logits], labels: Labels) -> float:
    """The loss of all rows, and that of being far from half and half."""
    labels_of_row = parts[0].shape[1] if labels.ndim == 2 else 1
    mixed = weights[0] * parts[0] + weights[1] * parts[1]
    total = len(labels) * labels_of_row * log_loss(mixed, labels) if len(labels) else 0.0
    return total + PRIOR * float(((weights - 0.5) ** 2).sum()) / 2


def derivatives(
    weights: Weights, parts: Sequence[Logits], labels: Labels
) -> tuple[Weights, Float[np.ndarray, "2 2"]]:
    """The slope and the curvature of `penalised`."""
    multi = labels.ndim == 2
    mixed = weights[0] * parts[0] + weights[1] * parts[1]
    chances = to_probabilities(mixed, multi_label=multi)
    truth = labels if multi else np.eye(mixed.shape[1])[labels]
    slope = np.array([((chances - truth) * part).sum() for part in parts])
    spread = chances * (1 - chances) if multi else chances
    centred = [part if multi else part - (chances * part).sum(1, keepdims=True) for part in parts]
    curvature = [[(spread * a * b).sum() for b in centred] for a in centred]
    return slope + PRIOR * (weights - 0.5), np.array(curvature) + PRIOR * np.eye(2)
