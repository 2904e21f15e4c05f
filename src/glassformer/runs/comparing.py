"""From measured runs to a comparison of variants: means over seeds, paired differences, notes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Score
from glassformer.metrics.seeds import Estimate, adjusted, over_seeds, paired_over_seeds
from glassformer.metrics.styles import style_of
from glassformer.reports.variants import Point, VariantResult
from glassformer.runs.compare_request import CompareRequest
from glassformer.runs.measuring import MeasuredRun
from glassformer.runs.variants import Variant
from glassformer.wording import counted

Runs = Sequence[MeasuredRun]  # of one variant, one for each seed


@dataclass(frozen=True, slots=True)
class Difference:
    """How far a variant is from the best, and whether both answered for the same rows."""

    estimate: Estimate
    paired: bool


def results_of(measured: Mapping[Variant, Runs], goal: str) -> tuple[list[VariantResult], bool]:
    """Every variant beside the best one, and whether all differences are paired."""
    means = {
        variant: {name: mean_score(name, scores) for name, scores in by_score(runs).items()}
        for variant, runs in measured.items()
    }
    sign = 1 if style_of(goal).higher_is_better else -1
    best = max(means, key=lambda variant: sign * means[variant][goal].value)
    gaps = {
        variant: difference(runs, measured[best], goal)
        for variant, runs in measured.items()
        if variant != best
    }
    chances = adjusted([gap.estimate.p_value() for gap in gaps.values()])
    p_values = dict(zip(gaps, chances, strict=True))
    results = [
        result_of(
            variant,
            runs,
            scores=means[variant],
            goal=goal,
            difference=gaps[variant].estimate.score() if variant in gaps else None,
            p_value=p_values.get(variant),
        )
        for variant, runs in measured.items()
    ]
    return results, all(gap.paired for gap in gaps.values())


def by_score(runs: Runs) -> dict[str, list[Score]]:
    """Each score of all runs."""
    return {name: [run.scores[name] for run in runs] for name in runs[0].scores}


def difference(runs: Runs, best: Runs, goal: str) -> Difference:
    """The goal of a variant minus that of the best: seed by seed and row by row where possible."""
    try:
        if all(run.is_comparable(other) for run, other in zip(runs, best, strict=True)):
            found = [
                run.reporter.compare(run.answers, other.answers)[goal]
                for run, other in zip(runs, best, strict=True)
            ]
            return Difference(paired_over_seeds(found), paired=True)
    except (GlassformerError, ValueError):  # as from answers to different texts
        pass
    alone = [over_seeds([run.scores[goal] for run in some]) for some in (runs, best)]
    return Difference(alone[0].minus(alone[1]), paired=False)


def result_of(
    variant: Variant,
    runs: Runs,
    *,
    scores: Mapping[str, Score],
    goal: str,
    difference: Score | None,
    p_value: float | None,
) -> VariantResult:
    """A variant with the means of what was measured."""
    speeds = [run.tokens_per_second for run in runs if run.tokens_per_second is not None]
    peaks = [run.bytes for run in runs if run.bytes is not None]
    return VariantResult(
        name=variant.name,
        settings=variant.settings,
        scores=scores,
        by_seed=[run.scores[goal].value for run in runs],
        difference=difference,
        p_value=p_value,
        parameters=runs[0].parameters,
        steps=round(mean(run.steps for run in runs)),
        tokens_per_second=mean(speeds) if speeds else None,
        rows_per_second=mean(run.rows_per_second for run in runs),
        bytes=round(mean(peaks)) if peaks else None,
        curve=mean_curve(runs),
        lengths={times: mean_at(runs, times, goal) for times in runs[0].lengths},
        longer={
            name: mean_score(name, [run.longer[name] for run in runs]) for name in runs[0].longer
        },
    )


def mean_score(name: str, scores: Sequence[Score]) -> Score:
    """The mean of a score over seeds, with an interval that stays on its scale.

    An error rate may exceed 1.

    >>> print(mean_score("accuracy", [Score(0.99, 0.97, 1.0), Score(0.98, 0.96, 1.0)]))
    0.985 [0.963, 1.000]
    """
    if len(scores) == 1:
        return scores[0]
    found, style = over_seeds(scores).score(), style_of(name)
    most = math.inf if style.most is None or not style.higher_is_better else float(style.most)
    if found.interval is None:
        return found
    low, high = found.interval
    return Score(found.value, max(low, min(0.0, found.value)), min(high, most))


def mean_at(runs: Runs, times: int, goal: str) -> Score | None:
    """The mean goal at so many times the length; None if a model cannot read so far."""
    found = [score for run in runs if (score := run.lengths[times]) is not None]
    return mean_score(goal, found) if len(found) == len(runs) else None


def mean_curve(runs: Runs) -> list[Point]:
    """The mean of the curves, or the first if they have different steps."""
    steps = [[step for step, _ in run.curve] for run in runs]
    if any(one != steps[0] for one in steps):
        return runs[0].curve
    values = zip(*([value for _, value in run.curve] for run in runs), strict=True)
    return [(step, mean(some)) for step, some in zip(steps[0], values, strict=True)]


def notes_on(request: CompareRequest, paired: bool, at_once: int, kept: int = 0) -> list[str]:
    """What to know about the numbers."""
    notes = []
    if request.seeds == 1:
        notes.append(
            "One seed: the intervals cover the choice of rows only, and a difference may be "
            "that of the seed; use more seeds."
        )
    else:
        notes.append("Intervals are 95 %, over seeds and rows.")
    notes.append(
        "p: the probability of a difference at least this large by chance, corrected for the "
        "number of variants (Holm); above 0.05 it is a tie."
    )
    if request.on == "valid":
        notes.append(
            "The validation rows also chose each run's checkpoint, unless train.weights = last, "
            "and what else is tuned on them, such as how much n-grams count."
        )
    if not paired:
        notes.append("Some variants read different rows, so their differences are not paired.")
    if at_once > 1:
        notes.append(f"Speed and memory are those of {at_once} runs side by side.")
    if kept:
        notes.append(
            f"{counted(kept, 'run')} trained before this command was given again: speed and "
            f"memory are those of that time."
        )
    return notes


def units_notes(score: Score, seeds: int) -> list[str]:
    """What intervals do not cover where there are too few units, such as a single document."""
    if score.interval is not None or not score.reason:
        return []
    if seeds == 1:
        return [f"No differences are tested: {score.reason}; use more seeds."]
    return [f"Intervals and p are over seeds only, for these very texts: {score.reason}."]


def failure_notes(
    failures: Mapping[Path, str], runs: Iterable[tuple[Variant, int, Path]]
) -> list[str]:
    """Which variants are left out, and why."""
    return [
        f"{variant.name} is left out: seed {seed} failed: {failures[path]}"
        for variant, seed, path in runs
        if path in failures
    ]
