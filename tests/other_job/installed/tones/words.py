"""What was written for some rows, and how good that is."""

from dataclasses import dataclass
from functools import cached_property

from glassformer.metrics.error_rates import character_error_rate, exact_match
from glassformer.metrics.measurement import Measure, Measurement
from glassformer.metrics.translation import measure_translations

MEASURES: dict[str, Measure] = {"cer": character_error_rate, "exact": exact_match}


@dataclass(frozen=True)
class Words:
    """What was written for each row, and the right word."""

    written: list[str]
    right: list[str]

    @cached_property
    def measurements(self) -> dict[str, Measurement]:
        """By the letter, and by the word."""
        return measure_translations(self.written, [[word] for word in self.right], MEASURES)
