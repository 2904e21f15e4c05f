"""A learning curve: would more data help? The same run on parts of its training rows.

The rows of a smaller part are among those of the larger, validation and test stay the same, and the
number of steps shrinks with the rows, so that all see each row equally often. A power law through
the errors says what twice the data might give; it is a guess, and says so.
"""

import json
import math
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.data.samples import NO_PART, Samples
from glassformer.data.splits import part_of
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder
from glassformer.runs.teaching import Taught, teach
from glassformer.tasks.job import Job
from glassformer.training.loop import validate
from glassformer.training.weights import write_json

SHARES = (0.125, 0.25, 0.5)


@dataclass(frozen=True, slots=True)
class Point:
    """How good the model is with so many training rows."""

    rows: int
    score: float


def learning_curve(folder: RunFolder, display: Display) -> list[Point]:
    """Train on an eighth, a quarter and a half of the rows, and add the curve to the report."""
    report = json.loads(folder.report.read_text(encoding="utf-8"))
    config = folder.config()
    job = folder.job(config, folder.data)
    whole = len(job.lengths("train"))
    points = [
        Point(rows, score)
        for share in SHARES
        for rows, score in (trained_on(folder, share, display),)
    ]
    points.append(Point(whole, best_of(folder, job)))
    said = sentence(points, job.goal, job.higher_is_better)
    values = [{"rows": point.rows, job.goal: point.score} for point in points]
    report["curve"] = {"points": values, "said": said}
    report["notes"].append(said)
    write_json(report, folder.report)
    display.say(said)
    return points


def trained_on(folder: RunFolder, share: float, display: Display) -> tuple[int, float]:
    """The score of the same run on a share of its training rows."""
    with tempfile.TemporaryDirectory(prefix="glassformer-") as scratch:
        smaller = RunFolder(Path(scratch) / "run")
        shutil.copytree(folder.path, smaller.path, ignore=left_behind)
        samples = Samples.open(smaller.data)
        kept = fewer(samples, share)
        np.save(smaller.data / "parts.npy", kept, allow_pickle=False)
        config = folder.config()
        steps = max(1, round((config.train.steps or 1) * share))
        smaller.write_config(replace(config, train=replace(config.train, steps=steps)))
        rows = int((kept == 0).sum())
        display.say(f"learning curve: {rows:,} rows")
        return rows, score_of(teach(smaller, display))


def left_behind(folder: str, names: list[str]) -> set[str]:
    """What a smaller run does not take along."""
    return {"checkpoints", "model.safetensors", "report.json", "report.html", "metrics.jsonl"} & {
        *names
    } | {name for name in names if name in ("board", "pretrain")}


def fewer(samples: Samples, share: float) -> np.ndarray:
    """Parts with only a share of the training rows; the others belong to none."""
    parts = samples.parts.copy()
    for row in samples.rows("train").tolist():
        if part_of(str(row), {"kept": share}, 0) != "kept":
            parts[row] = NO_PART
    return parts


def score_of(taught: Taught) -> float:
    return validate(taught.model, taught.job, taught.plan)[taught.job.goal]


def best_of(folder: RunFolder, job: Job[Any, Any, Any]) -> float:
    """The best validation score of a finished run."""
    lines = [json.loads(line) for line in folder.metrics.read_text(encoding="utf-8").splitlines()]
    scores = [line["scores"][job.goal] for line in lines if "scores" in line]
    return max(scores) if job.higher_is_better else min(scores)


def sentence(points: list[Point], goal: str, higher: bool) -> str:
    """What the curve says about more data.

    >>> sentence([Point(100, 0.7), Point(200, 0.8), Point(400, 0.866)], "accuracy", True)
    'With 100, 200, 400 rows accuracy is 0.700, 0.800, 0.866: twice the rows might give 0.911.'
    """
    errors = [max(1e-6, 1 - p.score if higher else p.score) for p in points]
    slope, level = np.polyfit(np.log([p.rows for p in points]), np.log(errors), 1)
    guess = math.exp(level + slope * math.log(2 * points[-1].rows))
    guess = min(guess, errors[-1])
    rows = ", ".join(f"{p.rows:,}" for p in points)
    scores = ", ".join(f"{p.score:.3f}" for p in points)
    gain = errors[-1] - guess
    told = (
        f"twice the rows might give {1 - guess if higher else guess:.3f}."
        if gain > 0.002
        else "more rows would hardly help."
    )
    return f"With {rows} rows {goal} is {scores}: {told}"
