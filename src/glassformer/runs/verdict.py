"""The verdict of a report: the model beside the strongest simple system, score by score.

The strongest system in one score may be hopeless in another: popularity ranks items better than
means of users and items, which predict ratings better. So each score has a rival of its own.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison
from glassformer.metrics.styles import style_of
from glassformer.reports import Table
from glassformer.reports.wording import (
    BASELINE_AHEAD,
    BASELINE_WINS,
    amount,
    chance,
    named,
    p_value,
    written,
)
from glassformer.runs.folder import RunFolder
from glassformer.tasks.reporter import Reporter, Rival
from glassformer.wording import counted

CHANCE = 0.05  # differences with a larger p-value do not count
MERE_CHANCE = 0.5  # those with a larger one are not worth a word
PLURALS = ("exact answers", "bits")  # how the names of scores begin that are plural
CHOICES = ("more rows (--curve tells whether they would help)", "another --size", "a longer --time")


@dataclass(frozen=True, slots=True)
class Duel:
    """The model against a simple system in one score."""

    score: str
    rival: Rival[Any]
    ours: float
    theirs: float
    comparison: Comparison

    @property
    def ahead(self) -> int:
        """1 where the model is better, -1 where the rival is, 0 where no difference is shown."""
        found = self.comparison.difference.value
        if amount(self.score, found) == amount(self.score, 0.0):
            return 0
        return 1 if (found > 0) == style_of(self.score).higher_is_better else -1

    @property
    def significant(self) -> bool:
        """Whether chance hardly makes such a difference."""
        return self.ahead != 0 and not is_chance(self.comparison)

    def sentence(self, unit: str) -> str:
        """The duel in words.

        Args:
            unit: What was compared, one by one.
        """
        difference, luck = self.comparison.difference.value, luck_in(self.comparison)
        name, rival = named(self.score), self.rival.kind
        rival = f"the baseline ({rival})" if self.rival.is_baseline else rival
        verb = "are" if name.startswith(PLURALS) else "is"
        where = f"over {counted(self.comparison.rows, unit)}, {name} {verb}"
        way = "higher" if difference > 0 else "lower"
        gap = f"{amount(self.score, difference)} {way}" if self.ahead else "the same"
        if self.comparison.p_value is None:
            return f"No verdict against {rival}: {where} {gap} ({luck})."
        if not self.significant:
            return f"No significant difference from {rival}: {where} {gap} ({luck})."
        better = "Better" if self.ahead > 0 else "Worse"
        return f"{better} than {rival}: {where} {gap} ({luck})."

    @property
    def in_short(self) -> str:
        """The score of both, where the rival is ahead."""
        theirs, ours = (written(self.score, value) for value in (self.theirs, self.ours))
        luck = luck_in(self.comparison)
        return f"{named(self.score)} ({self.rival.kind} {theirs}, this model {ours}, {luck})"


def is_chance(found: Comparison, most: float = CHANCE) -> bool:
    """Whether chance may make such a difference, or too few units can tell."""
    return found.p_value is None or found.p_value > most


def luck_in(found: Comparison) -> str:
    """The p-value in words, or why there is none."""
    return found.reason or chance(found.p_value)


def duels(
    reporter: Reporter[Any, Any],
    ours: Any,
    rivals: Sequence[Rival[Any]],
    scores: Mapping[str, Mapping[str, Score]],
) -> dict[str, Duel]:
    """The model against the strongest rival in each score that can be compared.

    Args:
        ours: The answers of the model.
        scores: Those of the model first, then of the rivals by name.
    """
    own, compared, found = next(iter(scores.values())), dict[str, dict[str, Comparison]](), {}
    for score in own:
        better = 1 if style_of(score).higher_is_better else -1
        values = {
            rival.name: scores[rival.name][score].value
            for rival in rivals
            if score in scores[rival.name] and math.isfinite(scores[rival.name][score].value)
        }
        strongest = max(
            (rival for rival in rivals if rival.name in values),
            key=lambda rival: better * values[rival.name],
            default=None,
        )
        if strongest is None:
            continue
        if strongest.name not in compared:
            compared[strongest.name] = reporter.compare(ours, strongest.answers)
        if (comparison := compared[strongest.name].get(score)) is not None:
            theirs = values[strongest.name]
            found[score] = Duel(score, strongest, own[score].value, theirs, comparison)
    return found


def duel_table(found: Mapping[str, Duel]) -> Table:
    """The strongest simple system in each score, beside the model."""
    return Table(
        title="The strongest simple system in each score",
        header=("score", "this model", "strongest", "system", "p"),
        rows=[
            (
                named(score),
                written(score, duel.ours),
                written(score, duel.theirs),
                duel.rival.name,
                p_value(duel.comparison.p_value),
            )
            for score, duel in found.items()
        ],
    )


def judgement(
    reporter: Reporter[Any, Any],
    ours: Any,
    rivals: Sequence[Rival[Any]],
    scores: Mapping[str, Mapping[str, Score]],
    instead: str | None = None,
    found: Mapping[str, Duel] | None = None,
) -> list[str]:
    """How good the model is: in the score it was chosen by, then where it is behind in others.

    Args:
        ours, rivals, scores: As for `duels`.
        instead: What is said of the first, if the model is one of its rivals.
        found: The duels, if they were fought before.
    """
    found = duels(reporter, ours, rivals, scores) if found is None else found
    goal, own = reporter.task.goal, next(iter(scores.values()))
    lines = [
        trivial_line(goal, own[goal].value, rival, reporter.compare(ours, rival.answers)[goal])
        for rival in rivals
        if rival.trivial and goal in own
    ]
    if instead is not None:
        return [*filter(None, lines), instead]
    behind = [
        other.in_short
        for score, other in found.items()
        if score != goal and other.ahead < 0 and not is_chance(other.comparison, MERE_CHANCE)
    ]
    if goal in found:
        lines.append(found[goal].sentence(reporter.compared_unit))
    if behind:
        lines.append(f"A simple system is ahead in {' and '.join(behind)}.")
    return [*filter(None, lines)]


def trivial_line(score: str, value: float, rival: Rival[Any], comparison: Comparison) -> str | None:
    """That the model is no better than answers that need no input; None if it is better."""
    difference = comparison.difference.value
    theirs, name, rest = value - difference, named(score), f"that of {rival.kind}"
    if written(score, theirs) == written(score, value):
        return f"The {name}, {written(score, value)}, is {rest}."
    better = (difference > 0) == style_of(score).higher_is_better
    if better and not is_chance(comparison):
        return None
    relation = "not significantly better than" if better else "worse than"
    luck = luck_in(comparison)
    return (
        f"The {name}, {written(score, value)}, is {relation} {rest}: {written(score, theirs)} "
        f"({luck})."
    )


def what_next(
    duel: Duel, folder: RunFolder, *, kept: bool, room: bool, sized: bool = True
) -> list[str]:
    """What to do where the model is not better than the strongest simple system.

    Args:
        kept: Whether the run keeps that system, as its baseline.
        room: Whether the score can still get better.
        sized: Whether the model has a size to choose.
    """
    choices = [choice for choice in CHOICES if sized or "--size" not in choice]
    if folder.pretrain.path.exists():
        choices.append("--no-pretrain")
    others = f"{', '.join(choices[:-1])} or {choices[-1]}"
    run = shlex.quote(str(folder.path))
    use = f"use it with `glassformer predict {run} --baseline`, or try" if kept else "try"
    if duel.ahead < 0:
        return [f"{BASELINE_WINS if duel.significant else BASELINE_AHEAD}: {use} {others}."]
    return [f"To do better, try {others}."] if room and not duel.significant else []


def has_room(goal: str, value: float) -> bool:
    """Whether a score can still get better.

    >>> has_room("accuracy", 1.0), has_room("bleu", 41.0), has_room("wer", 0.0)
    (False, True, False)
    """
    return value != (1.0 if style_of(goal).higher_is_better else 0.0)
