"""A learning curve: would more data help? The same run on fractions of its training rows.

Smaller fractions are subsets of larger ones, the validation split stays the same, and the number of
steps shrinks with the rows, down to a minimum. A power law fitted to the errors extrapolates to
twice the data; it is a guess, and the report says so.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from glassformer import processes
from glassformer.data.samples import NO_SPLIT, Samples
from glassformer.data.splits import split_of
from glassformer.reports import Table
from glassformer.reports.wording import named, written
from glassformer.runs.display import Display
from glassformer.runs.fit import FitResult, fit
from glassformer.runs.folder import RunFolder
from glassformer.runs.limits import scratch_folder
from glassformer.runs.prepare import Prepared
from glassformer.runs.resplit import resplit
from glassformer.runs.timing import SHARES, Budget
from glassformer.training.setup import FEWEST_STEPS
from glassformer.training.validation import validate

FEWEST_ROWS = 8  # fewer are not worth training on
WORTH = 0.002  # smaller gains are ignored


@dataclass(frozen=True, slots=True)
class Curve:
    """Validation scores by the number of training rows.

    >>> print(Curve("accuracy", True, [(100, 0.7), (200, 0.8), (400, 0.866)]).sentence())
    With 100, 200, 400 rows accuracy is 0.700, 0.800, 0.866; twice the rows might give 0.911.
    """

    goal: str
    higher_is_better: bool
    points: list[tuple[int, float]]
    perfect: float = 1.0

    def sentence(self) -> str:
        """Whether more data would help."""
        rows = ", ".join(f"{count:,}" for count, _ in self.points)
        scores = ", ".join(written(self.goal, score) for _, score in self.points)
        last, guess = self._error(self.points[-1][1]), self.doubled()
        outlook = (
            f"twice the rows might give {written(self.goal, self._score(guess))}"
            if last - guess > WORTH * self.perfect
            else "more rows would hardly help"
        )
        return f"With {rows} rows {named(self.goal)} is {scores}; {outlook}."

    def doubled(self) -> float:
        """The error that a power law predicts for twice the rows; at most the last one."""
        counts = np.log([count for count, _ in self.points])
        errors = [self._error(score) for _, score in self.points]
        slope, level = np.polyfit(counts, np.log(errors), 1)
        return min(errors[-1], math.exp(level + slope * (counts[-1] + math.log(2))))

    def _error(self, score: float) -> float:
        return max(1e-6, self.perfect - score if self.higher_is_better else score)

    def _score(self, error: float) -> float:
        return self.perfect - error if self.higher_is_better else error

    def table(self) -> Table:
        """The table of the report."""
        return Table(
            title="Learning curve",
            header=("training rows", f"{self.goal} on the validation split"),
            rows=self.points,
            note=self.sentence(),
        )


def learning_curve(
    result: FitResult, folder: RunFolder, display: Display, budget: Budget | None = None
) -> Curve | None:
    """Train on an eighth, a quarter and a half of the rows, where those are enough.

    Args:
        budget: What does not fit into it is left out.
    """
    task, samples = result.task, Samples.open(folder.data)
    if not len(task.lengths("valid")):
        display.say("no learning curve: there are no validation rows to score on")
        return None
    kept = {int((splits == 0).sum()): (share, splits) for share, splits in shares_of(samples)}
    kept = {rows: kept[rows] for rows in sorted(kept) if rows >= FEWEST_ROWS}
    budget, points = budget or Budget(), list[tuple[int, float]]()
    for rows, (share, splits) in kept.items():
        why = budget.left_out(f"learning curve without {rows:,} rows", share * result.seconds)
        if why := processes.broadcast(why):
            display.say(why)
            break
        points.append((rows, trained_on(folder, share, splits, display, budget)))
    if not kept:
        display.say("no learning curve: too few rows to train on a share of them")
    if not points:
        return None
    points.append(
        (len(samples.rows("train")), validate(result.model, task, result.setup)[task.goal])
    )
    curve = Curve(task.goal, task.higher_is_better, points, task.perfect)
    display.say(curve.sentence())
    return curve


def trained_on(
    folder: RunFolder,
    share: float,
    splits: UInt8[np.ndarray, " samples"],
    display: Display,
    budget: Budget,
) -> float:
    """The score of the same run trained on these rows only."""
    with scratch_folder() as scratch:
        full = folder.config().train.steps or 1
        steps = max(min(FEWEST_STEPS, full), round(full * share))
        smaller = resplit(folder, scratch, splits, steps)
        display.say(f"learning curve: {int((splits == 0).sum()):,} rows")
        result = fit(Prepared.open(smaller), display, budget, 1.0)
        return validate(result.model, result.task, result.setup)[result.task.goal]


def shares_of(samples: Samples) -> Iterator[tuple[float, UInt8[np.ndarray, " samples"]]]:
    """Each fraction of the training rows, with the resulting split of every sample."""
    for share in SHARES:
        yield share, fewer(samples, share)


def fewer(samples: Samples, share: float) -> UInt8[np.ndarray, " samples"]:
    """The split of every sample when only a fraction of the training rows is kept."""
    splits = samples.splits.copy()
    for row in samples.rows("train").tolist():
        if split_of(str(row), {"kept": share}, 0) != "kept":
            splits[row] = NO_SPLIT
    return splits
