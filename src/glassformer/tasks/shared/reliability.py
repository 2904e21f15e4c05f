"""How often answers like this one are right: what validation rows say, fitted after training.

The model's own probability of a text that it writes is no share of right answers. So the answers to
validation rows are sorted by their log-probability and cut into bins of equal size; bins in which
fewer are right than in the bin below are merged with it (pool adjacent violators, Ayer et al.,
1955), so that a higher probability never means a lower share. With too few rows, nothing is said.

    rows    0-49   50-99   100-149  150-199        rows    0-49   50-149  150-199
    right    11     31       29       48      ->   right    11      60      48

`reliability.json` in the run folder holds the bins. An answer counts as right if it equals one of
the right answers of its row.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from glassformer.config.values import fitting
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.metrics.error_rates import exact_match

FILE = "reliability.json"
SMALLEST = 50  # rows of a bin
FEWEST = 2 * SMALLEST  # validation rows from which bins tell anything


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers to validation rows with log-probabilities from `least` on.

    Attributes:
        rows, right: How many there are, and how many of them are right.
    """

    least: float
    rows: int
    right: int

    @property
    def share(self) -> float:
        """The share of right answers; 0 for an answer that is like none."""
        return self.right / max(1, self.rows)

    def sentence(self) -> str:
        """What this says about an answer.

        >>> Bin(-0.1, 131, 128).sentence()
        'answers like this were right in 128 of 131 validation rows'
        """
        if not self.rows:
            return "no answer to a validation row was as unlikely as this one"
        return f"answers like this were right in {self.right:,} of {self.rows:,} validation rows"

    def as_values(self) -> dict[str, int]:
        """Plain values, for JSON."""
        return {"right": self.right, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Reliability:
    """The bins, the lowest log-probability first; the share of right answers never falls."""

    bins: tuple[Bin, ...]

    @classmethod
    def fit(
        cls, log_probabilities: Float[np.ndarray, " N"], right: Bool[np.ndarray, " N"]
    ) -> "Reliability | None":
        """The bins of these answers; None if there are too few.

        >>> found = Reliability.fit(np.repeat([-9.0, -0.1], 60), np.arange(120) >= 50)
        >>> [(one.rows, one.right) for one in found.bins]
        [(60, 10), (60, 60)]
        """
        if len(right) < FEWEST:
            return None
        order = np.argsort(log_probabilities, kind="stable")
        scores, hits = log_probabilities[order], right[order]
        starts = [0]
        for place in np.flatnonzero(np.diff(scores)) + 1:  # equal ones stay together
            if min(place - starts[-1], len(scores) - place) >= SMALLEST:
                starts.append(int(place))
        bins = list[Bin]()
        for start, end in zip(starts, [*starts[1:], len(scores)], strict=True):
            bins.append(Bin(float(scores[start]), end - start, int(hits[start:end].sum())))
            while len(bins) > 1 and bins[-2].share >= bins[-1].share:
                below, above = bins[-2:]
                bins[-2:] = [Bin(below.least, below.rows + above.rows, below.right + above.right)]
        return cls(tuple(bins))

    @classmethod
    def learn(
        cls,
        folder: Path,
        written: Sequence[str],
        references: Sequence[Sequence[str]],
        log_probabilities: Sequence[float],
    ) -> "Reliability | None":
        """The bins of texts that were written, in the folder; None, and no file, if too few."""
        found = None
        if written:
            right = exact_match(written, references).rows[:, 0] > 0
            found = cls.fit(np.array(log_probabilities, dtype=np.float64), right)
        (folder / FILE).unlink(missing_ok=True)
        if found is not None:
            write_json(asdict(found), folder / FILE)
        return found

    def of(self, log_probability: float) -> Bin:
        """The bin of an answer; one without rows for what is less likely than all of them."""
        place = bisect_right([one.least for one in self.bins], log_probability)
        return self.bins[place - 1] if place else Bin(-math.inf, 0, 0)

    @classmethod
    def load(cls, folder: Path) -> "Reliability | None":
        """What `learn` found; None for a run of an earlier version, or with too few rows."""
        if not (folder / FILE).exists():
            return None
        try:
            found: Reliability = fitting(cls, read_json(folder / FILE), "it")
            if not found.bins or not all(0 <= one.right <= one.rows > 0 for one in found.bins):
                raise ValueError("no bins, or such as cannot be")
            return found
        except (OSError, ValueError, TypeError, GlassformerError) as error:
            raise GlassformerError(
                f"{folder / FILE}: not what a run says of its answers ({error}); copy the run again"
            ) from None
