"""The units of intervals and paired tests: rows, or groups of rows that are alike.

An interval says how far a score would change with other units. Rows of one document, speaker or
user are alike, so they are one unit: taken for independent, their 95 % interval holds the truth in
half of all cases. `LEAST` has the number of units from which the interval of each kind of score was
seen to hold the truth in 92 to 98 of 100 simulations (`benchmarks/coverage.py`, whose table is in
docs/reference/intervals.md). With fewer, a score says why it has no interval, and a comparison why
it has no p-value.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from glassformer.metrics.intervals import PerRow, Score
from glassformer.wording import counted


class Least(NamedTuple):
    """The fewest units that give an interval: rows, and groups of several rows each."""

    rows: int
    groups: int


LEAST: dict[str, Least] = {
    "share": Least(5, 5),
    "f1": Least(50, 15),
    "rate": Least(5, 5),
    "corpus": Least(10, 5),
    "mean": Least(5, 5),
    "gain": Least(30, 30),
    "rms": Least(5, 30),
    "calibration": Least(5, 5),
    "difference of share": Least(15, 8),
    "difference of f1": Least(5, 5),
    "difference of rate": Least(5, 5),
    "difference of corpus": Least(5, 5),
    "difference of mean": Least(5, 5),
    "difference of rms": Least(5, 5),
}


@dataclass(frozen=True, eq=False, slots=True)
class Units:
    """What rows are sampled by.

    Attributes:
        noun: What a unit is called.
        groups: A number for each row, equal for the rows of one unit; None if each is a unit.
        alike: Whether a unit has several rows, such as a user.
    """

    noun: str = "row"
    groups: Shaped[np.ndarray, " N"] | None = None
    alike: bool = False

    @property
    def several(self) -> bool:
        """Whether a unit has several rows."""
        return self.alike or self.groups is not None

    def sums(self, rows: PerRow) -> Float[np.ndarray, "units ..."]:
        """What each unit adds to the sums."""
        values = np.asarray(rows, dtype=np.float64)
        if self.groups is None:
            return values
        _, owner = np.unique(self.groups, return_inverse=True)
        found = np.zeros((int(owner.max()) + 1, *values.shape[1:]))
        np.add.at(found, owner, values)
        return found

    def sizes(self, rows: int) -> Float[np.ndarray, " units"]:
        """The number of rows of each unit."""
        return self.sums(np.ones(rows))

    def count(self, rows: int) -> int:
        """How many units so many rows are."""
        return rows if self.groups is None else len(np.unique(self.groups))

    def objection(self, kind: str, rows: int, what: str = "an interval") -> str:
        """Why a score of this kind has no interval; empty if it has one.

        >>> Units("document").objection("mean", 3)
        'too few documents for an interval: 3, of at least 5'
        """
        found = self.count(rows)
        least = LEAST[kind]
        needed = least.groups if self.several else least.rows
        if found >= needed:
            return ""
        if found == 1:
            return f"one {self.noun}: no {what.removeprefix('an ').removeprefix('a ')}"
        return f"too few {self.noun}s for {what}: {found:,}, of at least {needed:,}"

    def judged(self, kind: str, score: Score, rows: int) -> Score:
        """The score, without its interval where there are too few units for one."""
        why = self.objection(kind, rows)
        return Score.without_interval(score.value, why) if why else score

    def described(self, rows: int) -> str:
        """How many rows of how many units.

        >>> Units().described(200), Units("speaker", np.arange(200) // 50).described(200)
        ('200 rows', '200 rows of 4 speakers')
        """
        if self.groups is None:
            return counted(rows, self.noun)
        return f"{counted(rows, 'row')} of {counted(self.count(rows), self.noun)}"


ROWS = Units()


def pooled(units: Iterable[Units]) -> Units:
    """The units of several sets of rows, concatenated; a group is in one set only."""
    every = list(units)
    groups = [one.groups for one in every if one.groups is not None]
    if len(groups) < len(every):
        return ROWS
    return replace(every[0], groups=np.concatenate(groups))
