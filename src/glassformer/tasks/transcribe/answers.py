"""Texts of many recordings, the right ones, and the errors between them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int

from glassformer.errors import GlassformerError, install
from glassformer.metrics.error_rates import character_error_rate, exact_match, word_error_rate
from glassformer.metrics.intervals import Score
from glassformer.metrics.measurement import Measure, Measurement
from glassformer.metrics.paired import Comparison
from glassformer.metrics.translation import (
    measure_translations,
    translation_comparison,
    translation_scores,
)
from glassformer.metrics.units import ROWS, Units
from glassformer.tasks.transcribe.choices import Choices

MEASURES: dict[str, dict[str, Measure]] = {
    "words": {"wer": word_error_rate, "cer": character_error_rate, "exact": exact_match},
    "characters": {"cer": character_error_rate, "exact": exact_match},
}
GOALS = {"words": "wer", "characters": "cer"}
NOTHING = "∅"  # stands for the word that is missing on one side


@dataclass(frozen=True)
class Transcripts:
    """What was written for some rows, and what is right.

    Attributes:
        measure: Whether errors are counted in words, or in characters.
        choices: For each row and each weight that was tried, the texts that were compared.
        chances: For each row, the log-probability of what was written.
        rows: The number of each row in its split, if not all rows are there in order.
        units: What the rows are sampled by.
        heard, spent: Seconds of sound, and seconds that encoding and searching them took.
    """

    written: list[str]
    right: list[str]
    measure: str
    choices: Sequence[Sequence[Choices]] = ()
    heard: float = 0.0
    spent: float = 0.0
    chances: Sequence[float] = ()
    rows: Int[np.ndarray, " N"] | None = None
    units: Units = ROWS

    @cached_property
    def measured(self) -> dict[str, Measurement]:
        """Every score's sums, row by row."""
        references = [[text] for text in self.right]
        return measure_translations(self.written, references, MEASURES[self.measure], self.units)

    def scores(self) -> dict[str, Score]:
        """Error rates and exact matches, with intervals."""
        return translation_scores(self.measured)

    def values(self) -> dict[str, float]:
        """The same without intervals."""
        return {
            name: float(one.statistic(one.rows.sum(0, keepdims=True))[0])
            for name, one in self.measured.items()
        }

    def compared_with(self, other: "Transcripts") -> dict[str, Comparison]:
        """How much better these are, on the same rows, by the measure of these."""
        return translation_comparison(
            self.measured, Transcripts(other.written, other.right, self.measure).measured
        )

    @cached_property
    def edits(self) -> Counter[tuple[str, str]]:
        """The words, or characters, that are right and written instead of them, and how often.

        >>> Transcripts(["a bee"], ["a b c"], "words").edits
        Counter({('b', 'bee'): 1, ('c', '∅'): 1})
        """
        found: Counter[tuple[str, str]] = Counter()
        for written, right in zip(self.written, self.right, strict=True):
            found.update(self.errors(written, right))
        return found

    def errors(self, written: str, right: str) -> list[tuple[str, str]]:
        """The edits of one text."""
        return list(edits_between(self.split_up(right), self.split_up(written)))

    def split_up(self, text: str) -> list[str]:
        """The words or characters in which errors are counted."""
        return text.split() if self.measure == "words" else list(text)


def edits_between(right: list[str], written: list[str]) -> Iterator[tuple[str, str]]:
    """Substitutions, deletions and insertions, in order."""
    for tag, at, other in _editops()(right, written).as_list():
        if tag == "replace":
            yield right[at], written[other]
        elif tag == "delete":
            yield right[at], NOTHING
        else:
            yield NOTHING, written[other]


def refuse_unscorable() -> None:
    """Refuse a missing library before training rather than after."""
    _editops()


def _editops() -> Callable[[list[str], list[str]], Any]:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise GlassformerError(
            f"error rates need rapidfuzz, which is not installed; {install('audio')}"
        ) from None
    return Levenshtein.editops
