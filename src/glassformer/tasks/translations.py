"""Translations and how good they are: what a translator says about rows, beside what is right."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from glassformer.metrics.intervals import bootstrap, ratio
from glassformer.metrics.measured import Measure, Measured
from glassformer.metrics.paired import Comparison
from glassformer.metrics.score import Score
from glassformer.metrics.translation import (
    SYMBOL_MEASURES,
    TEXT_MEASURES,
    measure_translations,
    translation_comparison,
    translation_scores,
)

MEASURES: dict[str, Mapping[str, Measure]] = {"text": TEXT_MEASURES, "symbols": SYMBOL_MEASURES}
GOALS = {"text": "bleu", "symbols": "exact"}
LONGEST_SYMBOLS = 24  # characters of a target that is no sentence
CLOSED = 256  # different words or fewer are symbols


@dataclass(frozen=True)
class Translations:
    """What was said about rows, what is right, and how surprised the model is by what is right.

    Attributes:
        measure: `text` for sentences, `symbols` for words spelt in symbols.
        surprise, tokens: Of each row, minus the log-probability of its first reference, and its
            number of tokens.
    """

    said: list[str]
    meant: list[list[str]]
    surprise: Float[np.ndarray, " N"]
    tokens: Float[np.ndarray, " N"]
    measure: str

    @cached_property
    def measured(self) -> dict[str, Measured]:
        """Every score's sums, row by row."""
        return measure_translations(self.said, self.meant, MEASURES[self.measure])

    def scores(self) -> dict[str, Score]:
        """Scores with intervals; the loss is in nats a token."""
        loss = bootstrap(ratio, self.surprise, self.tokens)
        return {**translation_scores(self.measured), "loss": loss}

    def values(self) -> dict[str, float]:
        """The same without intervals, which take time."""
        found = {
            name: float(one.statistic(one.rows.sum(0, keepdims=True))[0])
            for name, one in self.measured.items()
        }
        return {**found, "loss": float(self.surprise.sum() / self.tokens.sum())}

    def compared_with(self, other: "Translations") -> dict[str, Comparison]:
        """How far these are better, on the same rows."""
        return translation_comparison(self.measured, other.measured)


def measure_for(targets: list[str]) -> str:
    """Whether targets are sentences, or words spelt in symbols: dates, phonemes, spellings."""
    words = {word for text in targets for word in text.split()}
    spelt = len(words) <= CLOSED < 4 * len(targets) and max(len(t.split()) for t in targets) > 1
    longest = np.mean([len(text) for text in targets])
    blanks = np.mean([len(text.split()) for text in targets])
    latin = np.mean([text.isascii() for text in targets])
    short = longest <= LONGEST_SYMBOLS and blanks < 2 and latin > 0.5
    return "symbols" if spelt or short else "text"
