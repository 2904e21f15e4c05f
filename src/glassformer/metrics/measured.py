"""A score before it is one: what each row adds to its sums, and what is made of them.

So a score and its interval, and the comparison of two systems, need to know nothing of the formula.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from glassformer.metrics.intervals import Groups, Statistic, bootstrap
from glassformer.metrics.score import Score

Texts = Sequence[str]
Interval = Callable[[np.ndarray, Groups | None], Score]
References = Sequence[Sequence[str]]  # the right answers of each row, one or several


@dataclass(frozen=True, slots=True)
class Measured:
    """Answers, measured row by row.

    Attributes:
        rows: What each row adds to the sums.
        statistic: From sums, of R resamples at once, to R scores.
        row_statistic: The same for the sums of single rows, where the field has another formula.
        higher_is_better: Whether more of the score is better.
        interval: From rows and groups to the score with its interval, for scores that have a better
            one than the bootstrap's.
        signature: What others need to repeat the measurement.
    """

    rows: Float[np.ndarray, "N K"]
    statistic: Statistic
    row_statistic: Statistic
    higher_is_better: bool
    signature: str = ""
    interval: Interval | None = None

    def score(self, groups: Groups | None = None) -> Score:
        """The score of all rows, with its interval."""
        if self.interval is not None:
            return self.interval(self.rows, groups)
        return bootstrap(self.statistic, self.rows, groups=groups)

    def gains_over(self, other: "Measured") -> Float[np.ndarray, " N"]:
        """How much better each row is here than in the other; below 0 where it is worse."""
        gains = self.row_statistic(self.rows) - other.row_statistic(other.rows)
        return gains if self.higher_is_better else -gains


Measure = Callable[[Texts, References], Measured]


def check_rows(answers: Texts, references: References) -> None:
    """Refuse what no score could be made of."""
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
