"""Recipes: published results, one TOML file each, with the measured score.

what = "..."                what it shows, in a sentence
folds = 10                  for data without a split: every row is tested once
[[stage]]                   one training; a later one starts from the weights of the one before
job, data, size, steps, ... options of `glassformer train`; paths relative to the working directory
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
from glassformer.reports.wording import interval, number_in, written
from glassformer.runs.api import resume, run_training
from glassformer.runs.display import Display
from glassformer.runs.earlier_reading import is_spare
from glassformer.runs.folder import RunFolder
from glassformer.runs.folds import column_of, pool, rows_with_folds
from glassformer.runs.new_folder import free_name, refuse_existing
from glassformer.runs.request import TrainRequest
from glassformer.runs.run import Run
from glassformer.tasks import JOBS
from glassformer.tasks.reporter import PoolingReporter

FOLD_TABLE, FOLLOWED = "rows.jsonl", "stages.json"
NEAR = 0.03  # of a score without an interval: another seed's may be so far off
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
    """A measured score, and how it was measured.

    Attributes:
        score: The name of the score, as in a report.
        low, high: Its interval; neither if there are too few units for one.
        baseline: The same score of the baseline, on the same rows.
    """

    score: str
    value: float
    command: str
    commit: str
    machine: str
    minutes: float
    low: float | None = None
    high: float | None = None
    baseline: float | None = None

    def __post_init__(self) -> None:
        require(
            (self.low is None) == (self.high is None),
            "result.low and result.high belong together; give both or neither",
        )
        low, high = self.interval or (self.value, self.value)
        require(
            low <= self.value <= high,
            f"result.value must lie between result.low and result.high, got {self.value} with "
            f"{low} and {high}",
        )
        require(self.minutes >= 0, f"result.minutes must be 0 or more, got {self.minutes}")

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the interval, if there is one."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def agrees(self, found: Mapping[str, Any]) -> bool:
        """Whether the interval of a reported score overlaps the claimed one.

        Without an interval, a score agrees that lies within NEAR of the claimed one.
        """
        value, low, high = (number_in(found, end) for end in ("value", "low", "high"))
        if value is None:
            return False
        start, end = self.interval or (self.value, self.value)
        if self.interval is None and (low is None or high is None):
            return abs(value - self.value) <= NEAR * abs(self.value)
        if low is None or high is None:
            low = high = value
        return low <= end and start <= high

    def verdict(self, found: Mapping[str, Any]) -> str:
        """The comparison in a sentence."""
        claimed = {"value": self.value, "low": self.low, "high": self.high}
        return (
            f"{self.score} {written(self.score, number_in(found, 'value'))} "
            f"{'agrees with' if self.agrees(found) else 'differs from'} the "
            f"{interval(self.score, claimed)} measured at {self.commit} on {self.machine}"
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """A result and how to reproduce it.

    Attributes:
        reference: How the user refers to it: its name, or the path of its file.
        folds: Number of cross-validation folds; None trains one model.
    """

    name: str
    reference: str
    what: str
    stages: tuple[Stage, ...]
    result: Result | None
    folds: int | None = None


def home() -> Path:
    """The folder of recipes: inside the installed package, or next to it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parents[1] / "recipes"


RECIPES: dict[str, Path] = {path.stem: path for path in sorted(home().glob("*.toml"))}


def read_recipe(name: str) -> Recipe:
    """A recipe by name, or by the path of its file."""
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
    """Refuse a malformed recipe before anything is trained."""
    for key in values:
        if key not in KEYS:
            raise GlassformerError(f"{path}: {unknown('key', key, KEYS)}")
    stages: Any = values.get("stage")
    folds = values.get("folds")
    if not (isinstance(values.get("what"), str) and is_tables(stages)):
        raise GlassformerError(
            f"{path}: a recipe needs `what`, a sentence, and at least one [[stage]]; add both"
        )
    if not isinstance(values.get("result", {}), dict):
        raise GlassformerError(f"{path}: result must be a table; write [result] above it")
    if folds is None:
        return
    if type(folds) is not int or folds < 2:
        raise GlassformerError(f"{path}: folds must be a whole number of 2 or more, got {folds!r}")
    tables = {(str(stage.get("data")), stage.get("group")) for stage in stages}
    if len(tables) > 1 or len(stages[0].get("data", ())) != 1:
        raise GlassformerError(
            f"{path}: folds need the same single table in all stages; drop folds, or join "
            f"the tables"
        )
    job = stages[-1].get("job")
    if job in JOBS and not issubclass(JOBS[job].reporter, PoolingReporter):
        raise GlassformerError(
            f"{path}: {job} cannot be cross-validated; drop folds, or end with another job"
        )


def refuse_unknown_score(job: str, result: Result | None) -> None:
    """A claimed score must be one that the last stage reports."""
    if result is None or job not in JOBS:
        return
    names = JOBS[job].reporter.score_names
    if result.score not in names:
        raise GlassformerError(f"result.score: {unknown('score', result.score, names)}")


def is_tables(value: Any) -> bool:
    """Whether this is a non-empty list of tables, as [[stage]] gives."""
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
        refuse_existing(path)
    return _train(recipe, recipe.stages, target, display, seed, device)


def pursue(recipe: Recipe, display: Display, run: Path) -> Run:
    """Train what is missing of a recipe in this folder; a finished run is only opened."""
    return _train(recipe, recipe.stages, run, display, None, None)


def follow_folds(
    recipe: Recipe,
    display: Display,
    *,
    run: Path | None = None,
    seed: int | None = None,
    device: str | None = None,
) -> tuple[Path, Report]:
    """Train a recipe once per fold, inside one folder, and score all folds together.

    Given a folder with finished folds, it continues with the missing ones.
    """
    assert recipe.folds is not None
    target = run or free_name(recipe.name)
    table, followed = target / FOLD_TABLE, target / FOLLOWED
    expected = json.dumps([asdict(stage) for stage in recipe.stages] + [recipe.folds])
    if followed.exists() and followed.read_text(encoding="utf-8") != expected:
        raise GlassformerError(
            f"{target}: was started with other settings than {recipe.reference} has now; name "
            f"another folder with --run"
        )
    if not followed.exists():
        refuse_existing(target)
    if not table.exists():
        data = {(stage.data, stage.group) for stage in recipe.stages}
        [((name,), group)] = data  # folds share one table
        rows = rows_with_folds(recipe.stages[-1].job, name, group, recipe.folds)
        target.mkdir(parents=True, exist_ok=True)
        write_text(expected, followed)  # before the rows, so that rows never lack their settings
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
    """Train one stage after the other, from the last that was started before."""
    paths = _stage_paths(target, stages)
    started = [
        number
        for number, path in enumerate(paths)
        if RunFolder(path).config_file.exists() and not is_spare(path)
    ]
    for number in range(max(started, default=0), len(stages)):
        stage, path = stages[number], paths[number]
        options = {name: getattr(stage, name) for name in Stage.__dataclass_fields__}
        options |= {"seed": stage.seed if seed is None else seed}
        options |= {"device": device or stage.device}
        request = TrainRequest(run=path, origin=paths[number - 1] if number else None, **options)
        command = f"glassformer reproduce {recipe.reference}"
        if number in started:
            trained = _continue(request, display)
        else:
            trained = run_training(request, display, command)
    return trained


def _stage_paths(target: Path, stages: tuple[Stage, ...]) -> list[Path]:
    """The folder of each stage: the target for the last, its siblings for the others."""
    earlier = range(1, len(stages))
    return [*(target.with_name(f"{target.name}-stage-{number}") for number in earlier), target]


def _over(stage: Stage, table: Path, fold: int) -> Stage:
    """The stage for one fold."""
    group = None if stage.group is None else "group"
    columns = {"split": column_of(fold)}
    return replace(stage, data=(str(table),), group=group, columns=columns)


def _continue(request: TrainRequest, display: Display) -> Run:
    """A stage that was started before: load it if finished, otherwise resume it."""
    assert request.run is not None
    folder = RunFolder(request.run)
    seed = folder.config().seed
    if seed != request.seed:
        raise GlassformerError(
            f"{request.run}: was trained with seed {seed}, not {request.seed}; name another folder "
            f"with --run"
        )
    if folder.is_finished:
        return Run(request.run, device=request.device or "auto")
    return resume(request.run, quiet=display.quiet)
