"""The sufficient statistics of a score, row by row, and the formula from their sums to the score.

Intervals and comparisons of two systems need nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from glassformer.metrics.intervals import Score, Statistic, jackknife
from glassformer.metrics.units import ROWS, Units

Texts = Sequence[str]
Interval = Callable[[np.ndarray, Units], Score]
References = Sequence[Sequence[str]]  # one or several for each row


@dataclass(frozen=True, slots=True)
class Measurement:
    """One score of some answers.

    Attributes:
        rows: What each row adds to the sums.
        statistic: From sums, of R resamples at once, to R scores.
        row_statistic: The same for single rows, where the usual formula is another.
        higher_is_better: Whether a higher score is better.
        kind: Which score it is in `units.LEAST`.
        signature: What others need to reproduce the score.
        interval: From the rows and their units to the score with its interval, if there is a better
            one than the jackknife's.
        units: What the rows are sampled by.
    """

    rows: Float[np.ndarray, "N K"]
    statistic: Statistic
    row_statistic: Statistic
    higher_is_better: bool
    kind: str
    signature: str = ""
    interval: Interval | None = None
    units: Units = ROWS

    def by(self, units: Units) -> "Measurement":
        """Copy this measurement with other units for its interval."""
        return replace(self, units=units)

    def score(self) -> Score:
        """The score of all rows, with its interval if there are enough units for one."""
        if self.interval is not None:
            found = self.interval(self.rows, self.units)
        else:
            sizes = self.units.sizes(len(self.rows))
            found = jackknife(self.statistic, self.units.sums(self.rows), weights=sizes).score()
        return self.units.judged(self.kind, found, len(self.rows))

    def gains_over(self, other: "Measurement") -> Float[np.ndarray, " N"]:
        """How much better each row is than in the other; below 0 where it is worse."""
        gains = self.row_statistic(self.rows) - other.row_statistic(other.rows)
        return gains if self.higher_is_better else -gains


Measure = Callable[[Texts, References], Measurement]


def check_rows(answers: Texts, references: References) -> None:
    """Refuse answers without references, and references of the wrong shape."""
    if not answers or len(answers) != len(references):
        raise ValueError(
            f"scores need at least one row, and references for each; got {len(answers)} answers "
            f"and references for {len(references)}"
        )
    lacking = [row for row, right in enumerate(references) if not right]
    if lacking:
        raise ValueError(f"every row needs a reference; row {lacking[0]} has none")
    if isinstance(references[0], str):
        raise ValueError("references are lists, one for each row; got texts instead")
