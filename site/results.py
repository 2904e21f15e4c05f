"""docs/results.md: every recipe with its measured score, from recipes/ and results.toml."""

import tomllib
from pathlib import Path
from typing import Any

from glassformer.metrics.styles import style_of
from glassformer.runs.recipes import read_recipe
from glassformer.tasks import BUILT_IN

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
INTRODUCTION = """\
# Results

Every row is a recipe in [recipes/](../recipes/README.md). `glassformer reproduce NAME` trains it
again and checks that the score agrees. Square brackets hold 95 % intervals. The page
[protocol](results/protocol.md) explains how intervals, baselines and times were obtained. Published
figures are for the same task; where we found none, the cell is empty.

A mark shows how often the test rows were used: **†** other settings had been scored on them before;
**‡** they also chose settings or steps. Rows without a mark were scored once. Times with **\\***
were measured while the machine did other work, so they are upper bounds.
"""
TITLES = {
    "classify": "Classify",
    "translate": "Translate",
    "transcribe": "Transcribe",
    "recognise": "Recognise",
    "generate": "Generate",
    "recommend": "Recommend",
}
SCORES = {
    "accuracy": "accuracy, %",
    "exact": "exact match, %",
    "wer": "word error rate, %",
    "cer": "character error rate, %",
    "bleu": "BLEU",
    "bits_per_byte": "bits per byte",
    "rmse": "RMSE",
}
BASELINES = {
    "classify": "n-grams (recordings: nearest)",
    "translate": "translation memory",
    "transcribe": "nearest recording",
    "recognise": "logistic regression",
    "generate": "Kneser-Ney n-grams",
    "recommend": "least squares",
}
MARKS = {"reused": " †", "chosen": " ‡"}
BUSY = ("busy", "shared", "other")


def results_page() -> str:
    """The page: a table for each job."""
    about = tomllib.loads(Path(__file__).with_name("results.toml").read_text(encoding="utf-8"))
    tables = {
        job: [row(name, known) for name, known in about.items() if job_of(name) == job]
        for job in TITLES
    }
    parts = [INTRODUCTION]
    for job, rows in tables.items():
        named = (
            "recipe",
            "task",
            "score",
            "test result",
            BASELINES[job],
            "published",
            "hardware, time",
        )
        head = f"| {' | '.join(named)} |"
        parts.append("\n".join([f"## {TITLES[job]}\n", head, "|---" * 7 + "|", *rows, ""]))
    return "\n".join(parts)


def job_of(name: str) -> str:
    """The job that the last training of a recipe has."""
    job = read_recipe(name).stages[-1].job
    if job not in BUILT_IN:
        raise ValueError(f"{name}: unknown job {job}")
    return job


def row(name: str, known: dict[str, Any]) -> str:
    """A recipe as a row of its table."""
    result = read_recipe(name).result
    if result is None:
        raise ValueError(f"recipe {name} has no measured result")
    value, baseline = (written(result.score, x) for x in (result.value, result.baseline))
    ends = [written(result.score, x) for x in result.interval or ()]
    between = f" [{', '.join(ends)}]" if ends else ""
    machine = result.machine.split(",")[0]
    busy = "\\*" if any(word in result.machine for word in BUSY) else ""
    rival = f"{baseline}; {known['rival']}" if "rival" in known else baseline
    cells = [
        f"`{name}`{MARKS.get(known.get('rows', ''), '')}",
        known["task"],
        SCORES[result.score],
        f"**{value}**{between}",
        rival,
        known.get("published", ""),
        f"{machine}, {result.minutes:g} min{busy}",
    ]
    return f"| {' | '.join(cells)} |"


def written(score: str, x: float) -> str:
    """A score as a percentage where it is a share, or in its own unit."""
    style = style_of(score)
    return f"{100 * x:.1f}" if style.most == 1 else f"{x:.{style.decimals}f}"
