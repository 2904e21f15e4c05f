"""Recipes: results we stand behind, one TOML file each, with the score that was measured.

what = "..."                what it shows, in a sentence
folds = 10                  for data that nobody has split: every row is tested once
[[stage]]                   one training; a later one begins with what the one before learned
job, data, size, steps, ... options of `glassformer train`; paths as seen from where it is started
[stage.values.train]        settings, as in a configuration
[result]                    the score, and the command, commit and machine that gave it
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from glassformer.config.values import Values, build, read_values
from glassformer.errors import GlassformerError, unknown
from glassformer.evaluation.report import Report
from glassformer.files import write_text
from glassformer.runs.asked import Asked
from glassformer.runs.creating import free_name, refuse_taken
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder
from glassformer.runs.folds import column_of, pool, write_table
from glassformer.runs.run import Run
from glassformer.runs.verbs import resume, train_as

FOLD_TABLE, FOLLOWED = "rows.jsonl", "stages.json"
KEYS = ("what", "folds", "stage", "result")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One training of a recipe."""

    job: str
    data: tuple[str, ...]
    columns: dict[str, str] = field(default_factory=dict)
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

    @property
    def interval(self) -> tuple[float, float, float]:
        """The score, and between what and what it lies."""
        return self.value, self.low, self.high

    def verdict(self, found: Mapping[str, float]) -> str:
        """Whether a score of a report is the one claimed, in a sentence."""
        agrees = found["low"] <= self.high and self.low <= found["high"]
        return (
            f"{self.score} {found['value']:.4f} {'agrees with' if agrees else 'differs from'} the "
            f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}] measured at {self.commit} "
            f"on {self.machine}"
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """A result and how it is made.

    Attributes:
        asked: The word that asks for it: its name, or the path of its file.
        folds: How many models share the rows of data that nobody has split; None trains one.
    """

    name: str
    asked: str
    what: str
    stages: tuple[Stage, ...]
    result: Result | None
    folds: int | None = None


def home() -> Path:
    """Where the recipes are: inside the package when it is installed, beside it otherwise."""
    package = Path(__file__).parents[1]
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parents[1] / "recipes"


RECIPES: dict[str, Path] = {path.stem: path for path in sorted(home().glob("*.toml"))}


def read_recipe(name: str) -> Recipe:
    """A recipe by name, or one's own by the path of its file."""
    own = name.endswith(".toml")
    if not own and name not in RECIPES:
        raise GlassformerError(unknown("recipe", name, RECIPES))
    path = Path(name) if own else RECIPES[name]
    values = read_values(path)
    _refuse_misshapen(path, values)
    try:
        stages = tuple(build(Stage, stage, "stage.") for stage in values["stage"])
        result = build(Result, values["result"], "result.") if "result" in values else None
    except GlassformerError as error:
        raise GlassformerError(f"{path}: {error}") from None
    return Recipe(path.stem, name, values["what"], stages, result, values.get("folds"))


def _refuse_misshapen(path: Path, values: Values) -> None:
    """A recipe is wrong before anything is trained, not after."""
    for key in values:
        if key not in KEYS:
            raise GlassformerError(f"{path}: {unknown('key', key, KEYS)}")
    stages: Any = values.get("stage")
    folds = values.get("folds")
    if not (isinstance(values.get("what"), str) and is_tables(stages)):
        raise GlassformerError(
            f"{path}: a recipe says in `what` what it shows, and how in [[stage]]; add both"
        )
    if not isinstance(values.get("result", {}), dict):
        raise GlassformerError(f"{path}: result is a table; write [result] above it")
    if folds is None:
        return
    if type(folds) is not int or folds < 2:
        raise GlassformerError(f"{path}: folds must be a whole number of 2 or more, got {folds!r}")
    tables = {(str(stage.get("data")), stage.get("group")) for stage in stages}
    several = len(tables) > 1 or len(stages[0].get("data", ())) != 1
    if several or stages[-1].get("job") != "classify":
        raise GlassformerError(
            f"{path}: folds are for classify, and for the rows of one table in all stages; leave "
            f"folds out, or join the tables"
        )


def is_tables(value: Any) -> bool:
    """Whether this is what [[stage]] gives: tables, at least one."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def follow(
    recipe: Recipe,
    display: Display,
    *,
    run: Path | None = None,
    seed: int | None = None,
    device: str | None = None,
) -> Run:
    """Train every stage of a recipe and return the last run."""
    return _train(recipe, recipe.stages, run or free_name(recipe.name), display, seed, device)


def follow_folds(
    recipe: Recipe,
    display: Display,
    *,
    run: Path | None = None,
    seed: int | None = None,
    device: str | None = None,
) -> tuple[Path, Report]:
    """Train a recipe once a fold, inside one folder, and score all folds together.

    Given a folder where folds are already, it goes on with what is missing.
    """
    assert recipe.folds is not None
    target = run or free_name(recipe.name)
    table, followed = target / FOLD_TABLE, target / FOLLOWED
    wanted = json.dumps([asdict(stage) for stage in recipe.stages] + [recipe.folds])
    if followed.exists() and followed.read_text(encoding="utf-8") != wanted:
        raise GlassformerError(
            f"{target}: was begun with other settings than {recipe.asked} has now; name another "
            f"folder with --run"
        )
    if not table.exists():
        refuse_taken(target)
        data = {(stage.data, stage.group) for stage in recipe.stages}
        [((name,), group)] = data  # folds share one table
        write_table(name, group, recipe.folds, table)
        write_text(wanted, followed)
    runs = []
    for fold in range(1, recipe.folds + 1):
        display.say(f"fold {fold} of {recipe.folds}")
        path = target / column_of(fold)
        stages = tuple(_over(stage, table, fold) for stage in recipe.stages)
        runs.append(
            _again(path, recipe.stages[-1].seed if seed is None else seed, display)
            if path.exists()
            else _train(recipe, stages, path, display, seed, device)
        )
    return target, pool(runs, target, f"glassformer reproduce {recipe.asked}", display)


def _train(
    recipe: Recipe,
    stages: tuple[Stage, ...],
    target: Path,
    display: Display,
    seed: int | None,
    device: str | None,
) -> Run:
    """Train one stage after the other."""
    refuse_taken(target)
    origin = None
    for number, stage in enumerate(stages, start=1):
        last = number == len(stages)
        path = target if last else target.with_name(f"{target.name}-stage-{number}")
        options = {name: getattr(stage, name) for name in Stage.__dataclass_fields__}
        options |= {"seed": stage.seed if seed is None else seed}
        options |= {"device": device or stage.device}
        asked = Asked(run=path, origin=origin, **options)
        done = train_as(asked, display, command=f"glassformer reproduce {recipe.asked}")
        origin = path
    return done


def _over(stage: Stage, table: Path, fold: int) -> Stage:
    """The stage for one fold."""
    group = None if stage.group is None else "group"
    columns = {"split": column_of(fold)}
    return replace(stage, data=(str(table),), group=group, columns=columns)


def _again(path: Path, seed: int, display: Display) -> Run:
    """A fold that was begun before: finished by now, or to be gone on with."""
    folder = RunFolder(path)
    if folder.config().seed != seed:
        raise GlassformerError(
            f"{path}: was trained with seed {folder.config().seed}, not {seed}; name another "
            f"folder with --run"
        )
    finished = folder.report.exists() and folder.model.exists()
    return Run(path) if finished else resume(path, quiet=display.quiet)
