"""Recipes: results we stand behind, one TOML file each, with the score that was measured.

what = "..."                what it shows, in a sentence
[[stage]]                   one training; a later one begins with what the one before learned
job, data, group, ...       any option of `glassformer train`
[stage.values.train]        settings, as in a configuration
[result]                    the score, and the command, commit and machine that gave it
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassformer.config.values import Values, build, read_values
from glassformer.errors import GlassformerError, unknown
from glassformer.runs.asked import Asked
from glassformer.runs.creating import free_name
from glassformer.runs.display import Display
from glassformer.runs.run import Run
from glassformer.runs.verbs import train_as


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One training of a recipe."""

    job: str
    data: tuple[str, ...]
    group: str | None = None
    size: str | None = None
    steps: int | None = None
    epochs: float | None = None
    time: str | None = None
    seed: int = 0
    pretrain: bool = False
    device: str | None = None
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What was measured, and how.

    Attributes:
        score: The name of the score, as in a report.
        baseline: The same score of the baseline, on the same rows.
    """

    score: str
    value: float
    low: float
    high: float
    command: str
    commit: str
    machine: str
    minutes: float
    baseline: float | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """A result and how it is made."""

    name: str
    what: str
    stages: tuple[Stage, ...]
    result: Result | None


def home() -> Path:
    """Where the recipes are: inside the package when it is installed, beside it otherwise."""
    package = Path(__file__).parents[1]
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parents[1] / "recipes"


RECIPES: dict[str, Path] = {path.stem: path for path in sorted(home().glob("*.toml"))}


def read_recipe(name: str) -> Recipe:
    """A recipe by name."""
    if name not in RECIPES:
        raise GlassformerError(unknown("recipe", name, RECIPES))
    values: Values = read_values(RECIPES[name])
    stages = tuple(build(Stage, stage, "stage.") for stage in values["stage"])
    result = build(Result, values["result"], "result.") if "result" in values else None
    return Recipe(name, values["what"], stages, result)


def follow(
    recipe: Recipe,
    display: Display,
    *,
    run: Path | None = None,
    seed: int | None = None,
    device: str | None = None,
) -> Run:
    """Train every stage of a recipe and return the last run."""
    target, origin = run or free_name(recipe.name), None
    last = len(recipe.stages)
    for number, stage in enumerate(recipe.stages, start=1):
        path = target if number == last else target.with_name(f"{target.name}-stage-{number}")
        options = {name: getattr(stage, name) for name in Stage.__dataclass_fields__}
        options |= {"seed": stage.seed if seed is None else seed}
        options |= {"device": device or stage.device}
        asked = Asked(run=path, origin=origin, **options)
        done = train_as(asked, display, command=f"glassformer reproduce {recipe.name}")
        origin = path
    return done
