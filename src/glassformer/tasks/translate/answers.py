"""Translations of many rows, their references, and their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from glassformer.config import choose
from glassformer.errors import install
from glassformer.metrics.intervals import Score, jackknife, ratio
from glassformer.metrics.measurement import Measure, Measurement
from glassformer.metrics.paired import Comparison
from glassformer.metrics.sacre import tokenization_for
from glassformer.metrics.translation import (
    SYMBOL_MEASURES,
    TEXT_MEASURES,
    measure_translations,
    missing_measures,
    translation_comparison,
    translation_scores,
)
from glassformer.metrics.units import ROWS, Units
from glassformer.reports.wording import named
from glassformer.tasks.translate.tokens import are_symbols

LETTER_MEASURES = {name: SYMBOL_MEASURES[name] for name in ("exact", "wer")} | {
    "cer": TEXT_MEASURES["cer"]
}
SLOW = ("ter",)  # searches for moved phrases, slowly in the output of an untrained model
MEASURES: dict[str, Mapping[str, Measure]] = {
    "text": TEXT_MEASURES,
    "symbols": SYMBOL_MEASURES,
    "letters": LETTER_MEASURES,
}
GOALS = {"text": ("bleu", "cer", "exact"), "symbols": ("exact",), "letters": ("exact",)}
PERFECT = {"bleu": 100.0, "cer": 0.0, "exact": 1.0}  # the best possible scores
GOAL_NAMES = ("auto", *PERFECT)
SPACED = "13a"  # how sacreBLEU tokenizes texts with spaces between words
LONGEST_WORD = 24  # characters of a target that is a single word


@dataclass(frozen=True)
class Translations:
    """Translations of rows, their references, and the likelihood of the references.

    Attributes:
        measure: `text` for sentences, `symbols` for words spelt in symbols separated by spaces,
            `letters` for words spelt in letters.
        nll, tokens: For each row, the negative log-probability of its first reference, and its
            number of tokens.
        chances: For each row, the log-probability of what was written.
        rows: The number of each row in its split, if not all rows are there in order.
        units: What the rows are sampled by.
    """

    hypotheses: list[str]
    references: Sequence[Sequence[str]]
    measure: str
    nll: Float[np.ndarray, " N"] | None = None
    tokens: Float[np.ndarray, " N"] | None = None
    chances: Sequence[float] = ()
    rows: Int[np.ndarray, " N"] | None = None
    units: Units = ROWS

    @cached_property
    def measured(self) -> dict[str, Measurement]:
        """Every score's sums, row by row."""
        return measure_translations(self.hypotheses, self.references, self.measures, self.units)

    @property
    def measures(self) -> Mapping[str, Measure]:
        """The measures that can be computed; no word error rate without spaces between words."""
        missing = missing_measures(MEASURES[self.measure])
        found = {name: one for name, one in MEASURES[self.measure].items() if name not in missing}
        if self.measure != "text" or tokenization_for(self.references) == SPACED:
            return found
        return {name: one for name, one in found.items() if name != "wer"}

    def scores(self) -> dict[str, Score]:
        """Scores with intervals; the loss is in nats per token."""
        scores = translation_scores(self.measured)
        if self.nll is None or self.tokens is None:
            return scores
        sums = [self.units.sums(part) for part in (self.nll, self.tokens)]
        loss = jackknife(ratio, *sums, weights=sums[1]).score()
        return {**scores, "loss": self.units.judged("mean", loss, len(self.nll))}

    def values(self) -> dict[str, float]:
        """The same without intervals and slow scores."""
        quick = {name: one for name, one in self.measures.items() if name not in SLOW}
        measured = measure_translations(self.hypotheses, self.references, quick)
        found = {
            name: float(one.statistic(one.rows.sum(0, keepdims=True))[0])
            for name, one in measured.items()
        }
        if self.nll is None or self.tokens is None:
            return found
        return {**found, "loss": float(self.nll.sum() / self.tokens.sum())}

    def compared_with(self, other: "Translations") -> dict[str, Comparison]:
        """How much better these are, on the same rows, by the measure of these."""
        if other.measure != self.measure:
            other = replace(other, measure=self.measure)
        return translation_comparison(self.measured, other.measured)

    @property
    def signatures(self) -> dict[str, str]:
        """What is needed to reproduce each score, by its name."""
        return {name: one.signature for name, one in self.measured.items() if one.signature}


def goal_of(measure: str, wanted: str) -> str:
    """The score by which the best model is chosen: as wanted, or the first that can be computed.

    A missing library, or a score of other measures, is refused.
    """
    if wanted == "auto":
        missing = missing_measures(MEASURES[measure])
        return next(name for name in GOALS[measure] if name not in missing)
    choose(f"task.goal for task.measure = {measure}", wanted, GOALS[measure])
    MEASURES[measure][wanted](["yes"], [["yes"]])  # raises, naming the library
    return wanted


def missing_line(measure: str) -> str:
    """Which scores are left out, for want of which library; empty if none are."""
    missing = missing_measures(MEASURES[measure])
    if not missing:
        return ""
    names, libraries = ", ".join(map(named, missing)), " and ".join(dict.fromkeys(missing.values()))
    return f"no {names}: {libraries} not installed; to have them, {install('translate')}"


def measure_for(targets: list[str]) -> str:
    """Whether targets are sentences, or single words: spelt in symbols, or in letters.

    >>> measure_for(["2024-02-29"]), measure_for(["Good morning!"]), measure_for(["早上好！"])
    ('letters', 'text', 'text')
    """
    if are_symbols(targets):
        return "symbols"
    characters = np.mean([len(text) for text in targets])
    words = np.mean([len(text.split()) for text in targets])
    writes_blanks = tokenization_for([[text] for text in targets]) == SPACED
    one_word = characters <= LONGEST_WORD and words < 1.5 and writes_blanks
    return "letters" if one_word else "text"
