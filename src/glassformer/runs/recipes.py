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

from glassformer.config import require
from glassformer.config.values import Values, build, read_values
from glassformer.errors import GlassformerError, unknown
from glassformer.files import write_text
from glassformer.reports import Report
from glassformer.reports.wording import written
from glassformer.runs.api import resume, run_training
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder
from glassformer.runs.folds import column_of, pool, rows_with_folds
from glassformer.runs.new_folder import free_name, refuse_taken
from glassformer.runs.request import TrainRequest
from glassformer.runs.run import Run
from glassformer.tasks import JOBS

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

    def __post_init__(self) -> None:
        require(
            self.low <= self.value <= self.high,
            f"result.value must lie between result.low and result.high, got {self.value} with "
            f"{self.low} and {self.high}",
        )
        require(self.minutes >= 0, f"result.minutes must be 0 or more, got {self.minutes}")

    @property
    def interval(self) -> tuple[float, float, float]:
        """The score, and between what and what it lies."""
        return self.value, self.low, self.high

    def agrees(self, found: Mapping[str, float | None]) -> bool:
        """Whether a score of a report may be the one claimed: the intervals of both overlap."""
        low, high = found["low"], found["high"]
        return low is not None and high is not None and low <= self.high and self.low <= high

    def verdict(self, found: Mapping[str, float | None]) -> str:
        """The same in a sentence."""
        value, low, high = (written(self.score, end) for end in self.interval)
        return (
            f"{self.score} {written(self.score, found['value'])} "
            f"{'agrees with' if self.agrees(found) else 'differs from'} the {value} "
            f"[{low}, {high}] measured at {self.commit} on {self.machine}"
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """A result and how it is made.

    Attributes:
        reference: How the user refers to it: its name, or the path of its file.
        folds: How many models share the rows of data that nobody has split; None trains one.
    """

    name: str
    reference: str
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
        refuse_unknown_score(stages[-1].job, result)
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
    if len(tables) > 1 or len(stages[0].get("data", ())) != 1:
        raise GlassformerError(
            f"{path}: folds are for the rows of one table in all stages; leave folds out, or join "
            f"the tables"
        )
    job = stages[-1].get("job")
    if job in JOBS and not JOBS[job].reporter.pools:
        raise GlassformerError(
            f"{path}: {job} cannot be scored in folds; leave folds out, or end with another job"
        )


def refuse_unknown_score(job: str, result: Result | None) -> None:
    """A claim is about a score that the last stage has."""
    if result is None or job not in JOBS:
        return
    names = JOBS[job].reporter.score_names
    if result.score not in names:
        raise GlassformerError(f"result.score: {unknown('score', result.score, names)}")


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
    target = run or free_name(recipe.name)
    for path in _stage_paths(target, recipe.stages):
        refuse_taken(path)
    return _train(recipe, recipe.stages, target, display, seed, device)


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
            f"{target}: was started with other settings than {recipe.reference} has now; name "
            f"another folder with --run"
        )
    if not followed.exists():
        refuse_taken(target)
    if not table.exists():
        data = {(stage.data, stage.group) for stage in recipe.stages}
        [((name,), group)] = data  # folds share one table
        rows = rows_with_folds(recipe.stages[-1].job, name, group, recipe.folds)
        target.mkdir(parents=True, exist_ok=True)
        write_text(wanted, followed)  # before the rows, which nobody could tell the settings of
        write_text(rows, table)
    runs = []
    for fold in range(1, recipe.folds + 1):
        display.say(f"fold {fold} of {recipe.folds}")
        stages = tuple(_over(stage, table, fold) for stage in recipe.stages)
        runs.append(_train(recipe, stages, target / column_of(fold), display, seed, device))
    return target, pool(runs, target, f"glassformer reproduce {recipe.reference}", display)


def _train(
    recipe: Recipe,
    stages: tuple[Stage, ...],
    target: Path,
    display: Display,
    seed: int | None,
    device: str | None,
) -> Run:
    """Train one stage after the other, from the last that was begun before."""
    paths = _stage_paths(target, stages)
    begun = [n for n, path in enumerate(paths) if RunFolder(path).config_file.exists()]
    for number in range(max(begun, default=0), len(stages)):
        stage, path = stages[number], paths[number]
        options = {name: getattr(stage, name) for name in Stage.__dataclass_fields__}
        options |= {"seed": stage.seed if seed is None else seed}
        options |= {"device": device or stage.device}
        asked = TrainRequest(run=path, origin=paths[number - 1] if number else None, **options)
        command = f"glassformer reproduce {recipe.reference}"
        done = _again(asked, display) if number in begun else run_training(asked, display, command)
    return done


def _stage_paths(target: Path, stages: tuple[Stage, ...]) -> list[Path]:
    """Where the run of each stage goes: the last into the target, the others beside it."""
    earlier = range(1, len(stages))
    return [*(target.with_name(f"{target.name}-stage-{number}") for number in earlier), target]


def _over(stage: Stage, table: Path, fold: int) -> Stage:
    """The stage for one fold."""
    group = None if stage.group is None else "group"
    columns = {"split": column_of(fold)}
    return replace(stage, data=(str(table),), group=group, columns=columns)


def _again(asked: TrainRequest, display: Display) -> Run:
    """A stage of a fold that was begun before: finished by now, or to be gone on with."""
    assert asked.run is not None
    folder = RunFolder(asked.run)
    seed = folder.config().seed
    if seed != asked.seed:
        raise GlassformerError(
            f"{asked.run}: was trained with seed {seed}, not {asked.seed}; name another folder "
            f"with --run"
        )
    if folder.is_finished:
        return Run(asked.run, device=asked.device or "auto")
    return resume(asked.run, quiet=display.quiet)
