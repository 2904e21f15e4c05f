"""The honest baseline of text classification: n-grams and a linear model. Wang and Manning, 2012.

Every n-gram is weighted by how much more often it occurs in one class than in the others (the
log-count ratio of naive Bayes), and a logistic regression learns the rest: one model a class,
against all others. It trains in seconds and is hard to beat on small data, so a report shows it
beside our model. What is counted and how strong the regularisation is are chosen on the validation
split; so is the temperature of the probabilities, as for our own models. Where there are many rows,
some of them are enough to choose by, and one more fit learns from all.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Int

from glassformer.metrics.calibration import fit_temperature, log_loss, to_probabilities
from glassformer.metrics.classification import accuracy_and_micro_f1
from glassformer.tasks.classify.linear import (
    Labels,
    Linear,
    LinearSettings,
    fit_linear,
    logits_of,
    members_of,
    row_weights,
)
from glassformer.tasks.shared.ngram_counts import NgramCounts
from glassformer.tasks.shared.ngrams import (
    MOST_CHARACTERS,
    MOST_COLUMNS,
    Analyser,
    Matrix,
    combinations_for,
    learn,
    side_by_side,
    weighted,
)

LADDER = (0.0625, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
START = 1.0
TUNED_ON = 10_000  # training rows that settings are tried on, at most
WORK = 400_000_000  # n-grams read by all fits of a search: about a minute
MOST_WEIGHTS = 30_000_000
ROUNDS = 40
CHOOSERS = 10  # parts of the validation rows, each scored by what the others choose
MANY_ROWS_ROUNDS = 8  # where there are more rows: more rounds change the score by less than chance


@dataclass(frozen=True, slots=True)
class Setting:
    """What a search chooses."""

    analysers: tuple[Analyser, ...]
    inverse_strength: float = START  # C: small values regularise more
    idf: bool = False

    def __str__(self) -> str:
        counted = " and ".join(map(str, self.analysers))
        return f"{counted}, {'tf-idf, ' if self.idf else ''}C = {self.inverse_strength:g}"

    def features(self, counts: Sequence[NgramCounts], found: Sequence[Matrix]) -> Matrix:
        """The features of some texts, whose n-grams are counted; those of an analyser together
        have a length of 1."""
        idfs = [one.idf if self.idf else None for one in counts]
        return side_by_side([weighted(*pair) for pair in zip(found, idfs, strict=True)])


@dataclass(frozen=True, slots=True)
class Trial:
    """A fitted setting and how well it does on the validation split; larger is better."""

    setting: Setting
    linear: Linear
    counts: tuple[NgramCounts, ...]
    logits: Float[np.ndarray, "N C"]  # of the validation split
    quality: tuple[float, float]


@dataclass(frozen=True, slots=True)
class NgramBaseline:
    """A fitted baseline: `described` says what was chosen, `seconds` how long it took.

    Attributes:
        cut_short: Whether time was over before all settings were tried.
        valid_logits: Of the validation rows, each by the setting that suits the others best: those
            of the chosen setting are too good, since these rows chose it.
    """

    trial: Trial = field(repr=False)
    temperature: float
    classes: int
    multi_label: bool
    seconds: float
    valid_logits: Float[np.ndarray, "N C"] = field(repr=False)
    cut_short: bool = False

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        labels: Labels,
        valid_texts: Sequence[str],
        valid_labels: Labels,
        classes: int,
        class_weights: Float[np.ndarray, " C"] | None = None,
        most_seconds: float = math.inf,
    ) -> "NgramBaseline":
        """Learn from the training rows; choose on the validation rows, if there are any.

        Args:
            labels: One class a row, or a 0 or 1 for every class (multi-label).
            class_weights: What a row of each class counts; if multi-label, what having it does.
            most_seconds: After which no further setting is tried. The first always is, and time
                is left for one more fit, to all rows.
        """
        if not len(texts) or len(texts) != len(labels):
            raise ValueError(
                f"a baseline needs training rows, each with its label; got {len(texts)} texts "
                f"and {len(labels)} labels"
            )
        began = time.perf_counter()
        some = rows_to_tune_on(texts)
        rounds = ROUNDS if len(some) == len(texts) else MANY_ROWS_ROUNDS
        valid = valid_texts, valid_labels, classes, rounds, class_weights
        search = Search([texts[row] for row in some], labels[some], *valid)
        fits = 1.0 + len(texts) / len(some) * (1.0 if len(some) == len(texts) else 2.0)
        search.last_start, search.fits_to_come = began + most_seconds, fits
        best = search.best(combinations_for(texts, search.members.shape[1]))
        cut_short = search.cut_short
        if len(some) < len(texts):
            search = Search(texts, labels, *valid)
            best = search.attempt(best.setting)
        temperature = fit_temperature(best.logits, valid_labels) if len(valid_texts) else 1.0
        seconds = time.perf_counter() - began
        unbiased = unbiased_logits(search.tried, valid_labels)
        return cls(best, temperature, classes, labels.ndim == 2, seconds, unbiased, cut_short)

    def refitted(
        self,
        texts: Sequence[str],
        labels: Labels,
        class_weights: Float[np.ndarray, " C"] | None = None,
    ) -> "NgramBaseline":
        """The same settings and temperature, fitted to other rows, such as all there are."""
        rounds = ROUNDS if len(texts) <= TUNED_ON else MANY_ROWS_ROUNDS
        search = Search(texts, labels, (), labels[:0], self.classes, rounds, class_weights)
        return replace(self, trial=search.attempt(self.trial.setting))

    @property
    def described(self) -> str:
        """What was chosen, in a few words."""
        return str(self.trial.setting)

    def probabilities(self, texts: Sequence[str]) -> Float[np.ndarray, "N C"]:
        """How likely each class is for each text."""
        trial = self.trial
        features = trial.setting.features(trial.counts, [count(texts) for count in trial.counts])
        logits = logits_of(trial.linear(features), self.classes, self.multi_label)
        return to_probabilities(logits, self.temperature, multi_label=self.multi_label)


def seconds_of_first(texts: Sequence[str], labels: Labels, classes: int) -> float:
    """The time of fitting the first setting that is tried to these rows."""
    began = time.perf_counter()
    search = Search(texts, labels, (), labels[:0], classes, ROUNDS)
    search.attempt(Setting(combinations_for(texts, search.members.shape[1])[0]))
    return time.perf_counter() - began


def rows_to_tune_on(texts: Sequence[str]) -> Int[np.ndarray, " some"]:
    """All rows, or as many as settings need, the same ones every time."""
    share = MOST_CHARACTERS / max(1, sum(map(len, texts)))
    most = min(TUNED_ON, math.ceil(share * len(texts)))
    if len(texts) <= most:
        return np.arange(len(texts))
    return np.sort(np.random.default_rng(0).permutation(len(texts))[:most])


def ngrams_counted(texts: Sequence[str], models: int) -> int:
    """The most n-grams that a baseline of these texts counts."""
    learn("linear_model")  # without it, there is no baseline
    combinations = combinations_for(texts, models)
    analysers = {analyser for some in combinations for analyser in some}
    columns = min(MOST_COLUMNS, MOST_WEIGHTS // models)
    each = {one: len(NgramCounts(one, texts, columns).columns) for one in analysers}
    return max(sum(each[one] for one in some) for some in combinations)


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
        class_weights: Float[np.ndarray, " C"] | None = None,
    ) -> None:
        self.texts, self.valid_texts, self.valid_labels = texts, valid_texts, valid_labels
        self.classes, self.multi_label, self.rounds = classes, labels.ndim == 2, rounds
        self.members = members_of(labels, classes)
        self.row_weights = row_weights(labels, self.members, class_weights)
        self.counted: dict[Analyser, tuple[NgramCounts, Matrix]] = {}
        self.tried: list[Float[np.ndarray, "N C"]] = []  # the validation logits of each attempt
        self.work = WORK
        self.last_start, self.fits_to_come = math.inf, 1.0  # by `time.perf_counter`; of all rows
        self.slowest, self.cut_short = 0.0, False

    def best(self, combinations: Sequence[tuple[Analyser, ...]]) -> Trial:
        """The analysers first, then the strength, then whether idf helps.

        The same rows give the same answer: what bounds the search is counted, not timed.
        """
        best = self.attempt(Setting(combinations[0]))
        if not len(self.valid_texts):
            return best
        for analysers in combinations[1:]:
            best = self.better(best, Setting(analysers))
        self.counted = {one: self.counted[one] for one in best.setting.analysers}
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
        if time.perf_counter() + self.fits_to_come * self.slowest > self.last_start:
            self.cut_short = True
            return best
        return max(best, self.attempt(setting), key=lambda trial: trial.quality)

    def attempt(self, setting: Setting) -> Trial:
        """Fit one setting and see how it does."""
        began = time.perf_counter()
        counted = [
            self._counted(analyser, len(setting.analysers)) for analyser in setting.analysers
        ]
        counts, valid = zip(*counted, strict=True)
        training = [one.training for one in counts]
        together = side_by_side(training)
        self.work -= together.nnz * self.members.shape[1]
        settings = LinearSettings(setting.inverse_strength, self.rounds)
        features = setting.features(counts, training)
        linear = fit_linear(features, together, self.members, settings, self.row_weights)
        scores = linear(setting.features(counts, valid))
        logits = logits_of(scores, self.classes, self.multi_label)
        self.tried.append(logits)
        self.slowest = max(self.slowest, time.perf_counter() - began)
        return Trial(setting, linear, counts, logits, quality_of(logits, self.valid_labels))

    def _counted(self, analyser: Analyser, analysers: int) -> tuple[NgramCounts, Matrix]:
        """The n-grams of the training texts, and their counts in the validation texts."""
        if analyser not in self.counted:
            columns = min(MOST_COLUMNS, MOST_WEIGHTS // (self.members.shape[1] * analysers))
            counts = NgramCounts(analyser, self.texts, columns)
            self.counted[analyser] = counts, counts(self.valid_texts)
        return self.counted[analyser]


def unbiased_logits(
    tried: Sequence[Float[np.ndarray, "N C"]], labels: Labels
) -> Float[np.ndarray, "N C"]:
    """The calibrated logits of each validation row, by the attempt that suits the others best."""
    found, fold = np.zeros_like(tried[0]), np.arange(len(labels)) % CHOOSERS
    for number in np.unique(fold):
        mine = fold == number
        best = max(tried, key=lambda logits: quality_of(logits[~mine], labels[~mine]))
        found[mine] = best[mine] / fit_temperature(best[~mine], labels[~mine])
    return found


def quality_of(logits: Float[np.ndarray, "N C"], labels: Labels) -> tuple[float, float]:
    """Accuracy (with micro-F1 when multi-label, at the best threshold), then the log loss."""
    if not len(logits):
        return 0.0, 0.0
    temperature = fit_temperature(logits, labels)
    loss = log_loss(logits, labels, temperature)
    if labels.ndim == 1:
        return float((logits.argmax(axis=1) == labels).mean()), -loss
    chances = to_probabilities(logits, temperature, multi_label=True)
    return float(accuracy_and_micro_f1(labels, chances).max()), -loss
