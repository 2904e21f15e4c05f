"""What is found out about heads: results that show themselves in a terminal and in a notebook."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from glassformer.explaining.heads import PLACES, HeadProfile
from glassformer.explaining.pruning import PruningStep
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison
from glassformer.reports.wording import difference, interval, named, p_value, written
from glassformer.runs.study import StudyResult
from glassformer.wording import counted


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class HeadsFound(StudyResult):
    """Where the heads of a model look, by their labels."""

    name: ClassVar[str] = "heads"

    rows: int
    heads: dict[str, HeadProfile]

    @property
    def title(self) -> str:
        return f"Where attention goes, on {counted(self.rows, 'row')}"

    @property
    def header(self) -> list[str]:
        return ["head", "looks at", "entropy", "distance", *self._places()]

    def lines(self) -> list[list[str]]:
        return [
            [
                label,
                one.kind,
                f"{one.entropy:.2f}",
                "" if one.distance is None else f"{one.distance:.1f}",
                *(f"{one.shares[p]:.0%}" if p in one.shares else "" for p in self._places()),
            ]
            for label, one in self.heads.items()
        ]

    def sentences(self) -> list[str]:
        kinds = Counter(one.kind for one in self.heads.values() if one.kind)
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        total = f"{kinds.total()} of {len(self.heads)} heads have a name"
        return [f"{total}: {listed}" if listed else total]

    def _places(self) -> list[str]:
        return [p for p in PLACES if any(p in one.shares for one in self.heads.values())]

    def as_values(self) -> dict[str, Any]:
        found = [{"name": label, **one.as_values()} for label, one in self.heads.items()]
        return {"rows": self.rows, "heads": found}


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeModel:
    """The score of a model with all of its heads.

    Attributes:
        goal: The name of the score.
    """

    goal: str
    higher_is_better: bool
    score: Score

    def described(self, rows: int) -> str:
        """The score on so many rows, in words."""
        better = "higher" if self.higher_is_better else "lower"
        value = interval(self.goal, self.score.as_values())
        return (
            f"With all heads, on {counted(rows, 'row')}: {named(self.goal)} {value}; {better} is "
            f"better"
        )

    def changed(self, found: Comparison) -> list[str]:
        """The cells of a comparison."""
        counts = f"{found.wins:,}", f"{found.losses:,}"
        return [difference(self.goal, found.difference), p_value(found.p_value), *counts]

    @property
    def header(self) -> list[str]:
        """The columns of those cells."""
        return [f"change of {named(self.goal)}", "p", "rows better", "worse"]

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "score": self.goal,
            "higher_is_better": self.higher_is_better,
            "whole": self.score.as_values(),
        }


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Ablations(StudyResult):
    """The score of a model, and its difference without some heads or layers.

    Attributes:
        without: By what is left out, the difference: without it minus with it.
    """

    whole: WholeModel
    without: dict[str, Comparison]

    @property
    def title(self) -> str:
        return self.whole.described(rows_in(list(self.without.values())))

    @property
    def header(self) -> list[str]:
        return ["without", *self.whole.header]

    def lines(self) -> list[list[str]]:
        return [[described(name), *self.whole.changed(one)] for name, one in self.without.items()]

    def as_values(self) -> dict[str, Any]:
        return {
            **self.whole.as_values(),
            "rows": rows_in(list(self.without.values())),
            "without": {name: one.as_values() for name, one in self.without.items()},
        }


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Pruned(StudyResult):
    """Heads that were removed together, step by step, until the score got worse.

    Attributes:
        heads: How many there are.
        tolerance: What of the score may be lost, in its own unit.
    """

    whole: WholeModel
    heads: int
    tolerance: float
    steps: tuple[PruningStep, ...]

    @property
    def removed(self) -> tuple[str, ...]:
        """The most heads without which the score is not worse, the least important first."""
        kept = [step for step in self.steps if not step.worse]
        return tuple(part.label for part in kept[-1].removed) if kept else ()

    @property
    def title(self) -> str:
        return self.whole.described(rows_in([step.comparison for step in self.steps]))

    @property
    def header(self) -> list[str]:
        return ["heads removed", *self.whole.header, ""]

    def lines(self) -> list[list[str]]:
        return [
            [
                str(len(step.removed)),
                *self.whole.changed(step.comparison),
                "too much worse" if step.worse else "",
            ]
            for step in self.steps
        ]

    def sentences(self) -> list[str]:
        score, allowed = named(self.whole.goal), written(self.whole.goal, self.tolerance)
        total = (
            f"{len(self.removed)} of {self.heads} heads can go together before the model is "
            f"significantly worse in {score}, or worse by more than {allowed}"
        )
        order = f"The least important first: {', '.join(self.removed)}"
        return [total, order] if self.removed else [total]

    def as_values(self) -> dict[str, Any]:
        return {
            **self.whole.as_values(),
            "rows": rows_in([step.comparison for step in self.steps]),
            "heads": self.heads,
            "tolerance": self.tolerance,
            "removed": list(self.removed),
            "steps": [
                {
                    "removed": [part.label for part in step.removed],
                    "worse": step.worse,
                    **step.comparison.as_values(),
                }
                for step in self.steps
            ],
        }


def rows_in(comparisons: Sequence[Comparison]) -> int:
    """How many rows were compared."""
    return max((one.wins + one.losses + one.ties for one in comparisons), default=0)


def described(label: str) -> str:
    """What is left out, in words: heads have two numbers, layers one.

    >>> [described(label) for label in ("3.5", "encoder.3", "cross.3", "0.1, 0.2")]
    ['head 3.5', 'layer encoder.3', 'all heads of cross.3', 'heads 0.1, 0.2']
    >>> described("encoder.members.0.1")
    'layer encoder.members.0.1'
    """
    parts = [part.strip() for part in label.split(",")]
    bare = [re.sub(r"\.members\.\d+", "", part) for part in parts]
    kinds = {"head" if len(re.findall(r"\d+", part)) > 1 else "layer" for part in bare}
    if len(parts) > 1:
        return f"{kinds.pop()}s {label}" if len(kinds) == 1 else label
    whole = kinds == {"layer"} and label.startswith("cross.")
    return f"all heads of {label}" if whole else f"{kinds.pop()} {label}"
