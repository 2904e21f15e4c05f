"""The honest baseline of text classification: n-grams and a linear model. Wang and Manning, 2012.

Every n-gram is weighted by how much more often it occurs in one class than in the others (the
log-count ratio of naive Bayes), and a logistic regression learns the rest: one model a class,
against all others. It trains in seconds and is hard to beat on small data, so a report shows it
beside our model. What is counted and how strong the regularisation is are chosen on the validation
split; so is the temperature of the probabilities, as for our own models. Where there are many rows,
some of them are enough to choose by, and one more fit learns from all.
"""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from glassformer.metrics.calibration import fit_temperature, log_loss, to_probabilities
from glassformer.metrics.classification import THRESHOLD, f1_counts, safe_divide
from glassformer.tasks.shared.ngrams import (
    MOST_COLUMNS,
    Analyser,
    Matrix,
    NgramCounts,
    analysers_for,
    learn,
    scaled_columns,
    weighted,
)

LADDER = (0.0625, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
START = 1.0
TUNED_ON = 10_000  # training rows that settings are tried on
WORK = 400_000_000  # n-grams read by all fits of a search: about a minute
MOST_WEIGHTS = 30_000_000
TOLERANCE, ROUNDS = 0.1, 40
MANY_ROWS_ROUNDS = 8  # where there are more rows: more rounds change the score by less than chance

Labels = Shaped[np.ndarray, "_ ..."]  # one class a row, or a 0 or 1 for every class


@dataclass(frozen=True, slots=True)
class Setting:
    """What a search chooses."""

    analyser: Analyser
    inverse_strength: float = START  # C: small values regularise more
    idf: bool = False

    def __str__(self) -> str:
        return f"{self.analyser}, {'tf-idf, ' if self.idf else ''}C = {self.inverse_strength:g}"


@dataclass(frozen=True, slots=True)
class LinearSettings:
    """How a linear model is fitted: its C, and the most rounds over the rows."""

    inverse_strength: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Linear:
    """One linear model a class; for two classes that exclude each other, one in all."""

    weights: Float[np.ndarray, "F K"]
    bias: Float[np.ndarray, " K"]

    def __call__(self, features: Matrix) -> Float[np.ndarray, "N K"]:
        return np.asarray(features @ self.weights) + self.bias


@dataclass(frozen=True, slots=True)
class Trial:
    """A fitted setting and how well it does on the validation split; larger is better."""

    setting: Setting
    linear: Linear
    counts: NgramCounts
    logits: Float[np.ndarray, "N C"]  # of the validation split
    quality: tuple[float, float]


@dataclass(frozen=True, slots=True)
class NgramBaseline:
    """A fitted baseline: `described` says what was chosen, `seconds` how long it took."""

    trial: Trial = field(repr=False)
    temperature: float
    classes: int
    multi_label: bool
    seconds: float

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        labels: Labels,
        valid_texts: Sequence[str],
        valid_labels: Labels,
        classes: int,
    ) -> "NgramBaseline":
        """Learn from the training rows; choose on the validation rows, if there are any.

        Args:
            labels: One class a row, or a 0 or 1 for every class (multi-label).
        """
        if not len(texts) or len(texts) != len(labels):
            raise ValueError(
                f"a baseline needs training rows, each with its label; got {len(texts)} texts "
                f"and {len(labels)} labels"
            )
        began = time.perf_counter()
        valid, some = (valid_texts, valid_labels, classes), rows_to_tune_on(len(texts))
        rounds = ROUNDS if len(some) == len(texts) else MANY_ROWS_ROUNDS
        search = Search([texts[row] for row in some], labels[some], *valid, rounds)
        best = search.best(analysers_for(texts))
        if len(some) < len(texts):
            best = Search(texts, labels, *valid, rounds).attempt(best.setting)
        temperature = fit_temperature(best.logits, valid_labels) if len(valid_texts) else 1.0
        seconds = time.perf_counter() - began
        return cls(best, temperature, classes, labels.ndim == 2, seconds)

    @property
    def described(self) -> str:
        """What was chosen, in a few words."""
        return str(self.trial.setting)

    def probabilities(self, texts: Sequence[str]) -> Float[np.ndarray, "N C"]:
        """How likely each class is for each text."""
        trial = self.trial
        features = weighted(trial.counts(texts), trial.counts.idf if trial.setting.idf else None)
        logits = logits_of(trial.linear(features), self.classes, self.multi_label)
        return to_probabilities(logits, self.temperature, multi_label=self.multi_label)


def rows_to_tune_on(rows: int) -> Int[np.ndarray, " some"]:
    """All rows, or as many as settings need, the same ones every time."""
    if rows <= TUNED_ON:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).permutation(rows)[:TUNED_ON])


class Search:
    """Tries settings, one part of the choice after the other, within a fixed amount of work."""

    def __init__(
        self,
        texts: Sequence[str],
        labels: Labels,
        valid_texts: Sequence[str],
        valid_labels: Labels,
        classes: int,
        rounds: int,
    ) -> None:
        self.texts, self.valid_texts, self.valid_labels = texts, valid_texts, valid_labels
        self.classes, self.multi_label, self.rounds = classes, labels.ndim == 2, rounds
        self.members = members_of(labels, classes)
        self.counted: dict[Analyser, tuple[NgramCounts, Matrix]] = {}
        self.work = WORK

    def best(self, analysers: Sequence[Analyser]) -> Trial:
        """The analyser first, then the strength, then whether idf helps.

        The same rows give the same answer: what bounds the search is counted, not timed.
        """
        best = self.attempt(Setting(analysers[0]))
        if not len(self.valid_texts):
            return best
        for analyser in analysers[1:]:
            best = self.better(best, Setting(analyser))
        self.counted = {best.setting.analyser: self.counted[best.setting.analyser]}
        best = self.climbed(best)
        return self.better(best, replace(best.setting, idf=True))

    def climbed(self, best: Trial) -> Trial:
        """Up the ladder of strengths as long as it helps; down if the first step up did not."""
        start = best
        for direction in (1, -1):
            for strength in self.steps(start.setting.inverse_strength, direction):
                setting = replace(start.setting, inverse_strength=strength)
                before, best = best, self.better(best, setting)
                if best is before:
                    break
            if best is not start:
                break
        return best

    @staticmethod
    def steps(strength: float, direction: int) -> tuple[float, ...]:
        """The rest of the ladder, from here."""
        ladder = LADDER[::direction]
        return ladder[ladder.index(strength) + 1 :]

    def better(self, best: Trial, setting: Setting) -> Trial:
        """The better of what there is and another setting, if there is work left to try it."""
        if self.work <= 0:
            return best
        return max(best, self.attempt(setting), key=lambda trial: trial.quality)

    def attempt(self, setting: Setting) -> Trial:
        """Fit one setting and see how it does."""
        if setting.analyser not in self.counted:
            columns = min(MOST_COLUMNS, MOST_WEIGHTS // self.members.shape[1])
            counts = NgramCounts(setting.analyser, self.texts, columns)
            self.counted[setting.analyser] = counts, counts(self.valid_texts)
        counts, valid = self.counted[setting.analyser]
        idf = counts.idf if setting.idf else None
        self.work -= counts.training.nnz * self.members.shape[1]
        model = LinearSettings(setting.inverse_strength, self.rounds)
        linear = fit_linear(weighted(counts.training, idf), counts.training, self.members, model)
        logits = logits_of(linear(weighted(valid, idf)), self.classes, self.multi_label)
        return Trial(setting, linear, counts, logits, quality_of(logits, self.valid_labels))


def members_of(labels: Labels, classes: int) -> Bool[np.ndarray, "N K"]:
    """Which rows each linear model should say yes to."""
    if labels.ndim == 2:
        return labels.astype(bool)
    each = labels[:, None] == np.arange(classes)
    return each[:, 1:] if classes == 2 else each


def fit_linear(
    features: Matrix, counts: Matrix, members: Bool[np.ndarray, "N K"], settings: LinearSettings
) -> Linear:
    """A logistic regression a column of `members`, over features weighted by their ratios."""
    rows, models = members.shape
    weights, bias = np.zeros((features.shape[1], models)), np.zeros(models)
    for number in range(models):
        inside = members[:, number]
        if not features.shape[1] or inside.all() or not inside.any():
            bias[number] = np.log(inside.sum() + 1) - np.log(rows - inside.sum() + 1)
            continue
        ratios = log_count_ratios(counts, inside)
        fitted = logistic_regression(scaled_columns(features, ratios), inside, settings)
        weights[:, number] = fitted.coef_[0] * ratios
        bias[number] = fitted.intercept_[0]
    return Linear(weights, bias)


def log_count_ratios(counts: Matrix, inside: Bool[np.ndarray, " N"]) -> Float[np.ndarray, " F"]:
    """log((p / |p|) / (q / |q|)), where p and q count the rows inside and outside that have it."""
    width = counts.shape[1]
    p, q = (1 + np.bincount(counts[side].indices, minlength=width) for side in (inside, ~inside))
    return np.log(p / p.sum()) - np.log(q / q.sum())


def logistic_regression(features: Matrix, inside: np.ndarray, settings: LinearSettings) -> Any:
    """scikit-learn's, by coordinates of the dual: quick where columns outnumber rows."""
    model = learn("linear_model").LogisticRegression(
        C=settings.inverse_strength,
        solver="liblinear",
        dual=True,
        tol=TOLERANCE,
        max_iter=settings.rounds,
        random_state=0,
    )
    with warnings.catch_warnings():  # the last digits of the weights are not worth waiting for
        warnings.simplefilter("ignore", learn("exceptions").ConvergenceWarning)
        return model.fit(features, inside)


def logits_of(
    scores: Float[np.ndarray, "N K"], classes: int, multi_label: bool
) -> Float[np.ndarray, "N C"]:
    """Scores of yes against no, as logits of one class among all, or of each by itself."""
    if multi_label:
        return scores
    if classes == 2:
        return np.concatenate([np.zeros_like(scores), scores], axis=1)
    return -np.logaddexp(0, -scores)


def quality_of(logits: Float[np.ndarray, "N C"], labels: Labels) -> tuple[float, float]:
    """Accuracy (micro-F1 when multi-label), and the log loss where that is the same."""
    if not len(logits):
        return 0.0, 0.0
    loss = log_loss(logits, labels, fit_temperature(logits, labels))
    if labels.ndim == 1:
        return float((logits.argmax(axis=1) == labels).mean()), -loss
    given = to_probabilities(logits, multi_label=True) >= THRESHOLD
    hits, named = f1_counts(labels, given, labels.shape[1])
    return float(safe_divide(2 * hits.sum(), named.sum())), -loss
