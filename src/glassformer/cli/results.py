"""Results on standard output: tables, or one JSON object."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from glassformer import processes
from glassformer.data.columns import columns_line
from glassformer.metrics.paired import Comparison
from glassformer.reports.record import SOME_ROWS
from glassformer.reports.wording import (
    BASELINE_AHEAD,
    BASELINE_WINS,
    chance,
    difference,
    score_rows,
    written,
)
from glassformer.runs.display import in_bytes
from glassformer.runs.evaluation import Evaluation
from glassformer.runs.folder import read_json
from glassformer.runs.listing import prunable, size_of
from glassformer.runs.recipes import Recipe
from glassformer.runs.run import Run
from glassformer.terminal import Terminal, print_json, printable
from glassformer.wording import counted

ADVICE = (BASELINE_WINS, BASELINE_AHEAD)  # how notes begin that are shown last
Ends = Mapping[str, Any]  # value, low, high; None for NaN; the reason for no interval
Scores = Mapping[str, Ends]


def show_run(run: Run, *, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    """Show the scores of a run and its baseline, and how to use it; only rank 0 prints.

    Args:
        more: Extra values for the JSON.
    """
    if not processes.is_first():
        return
    report, path = read_json(run.folder.report), run.folder.path
    if as_json:
        systems: list[tuple[str, Scores]] = list(report["scores"].items())
        # Earlier versions do not name the baseline: it is the second system.
        name = report.get("baseline", systems[1][0] if len(systems) > 1 else None)
        print_json(
            {
                "run": str(path),
                "job": run.config.job,
                "scores": dict(systems[0][1]) if systems else {},
                "baseline": None if name is None else {"name": name, "scores": dict(systems)[name]},
                "notes": report["notes"],
                **(more or {}),
            }
        )
        return
    console = Terminal()
    if report["scores"]:
        print_table(score_table(report["scores"], f"On the {report['facts']['scored on']}"))
    for table in report["tables"]:
        if table["title"] == SOME_ROWS:
            print_table(row_table(table))
    for note in report["notes"]:
        if not note.startswith(ADVICE):
            console.say(note)
    console.say(f"Report: {path / 'report.html'}")
    use = f'glassformer predict {shlex.quote(str(path))} "{run.predictor.example()}"'
    console.say(f"Use it: {use}")
    console.say(size_line(path))
    for note in report["notes"]:
        if note.startswith(ADVICE):
            console.say(note, style="yellow")


def size_line(path: Path) -> str:
    """The size of a run's folder, now and without what predictions do not need."""
    total, spare = size_of(path), sum(size for _, size in prunable(path))
    if not spare:
        return f"Size: {in_bytes(total)}"
    prune = f"glassformer runs prune {shlex.quote(str(path))}"
    rest = in_bytes(total - spare)
    return f"Size: {in_bytes(total)}; {rest} without checkpoints and data: {prune}"


def show_evaluation(found: Evaluation, run: Run, other: Run | None, *, as_json: bool) -> None:
    """Show the scores on some data, and the comparison with another run."""
    values = found.as_values()
    if as_json:
        print_json(values)
        return
    console, (name, rival) = Terminal(), _names(run, other)
    systems = {name: values["scores"]}
    if found.comparison is not None:
        systems.setdefault(rival, values["against_scores"])
    print_table(score_table(systems, f"On {counted(values['rows'], 'row')}"))
    for table in values["tables"]:
        print_table(row_table(table))
    header = next(iter(found.ingest.headers.values()), None)
    console.say(f"columns: {columns_line(found.ingest.columns, header, found.ingest.unread)}")
    for reason, count in values["skipped"].items():
        console.say(f"left out: {counted(count, 'row')} with {reason}")
    if found.trained_on:
        console.say(found.optimism)
    for note in found.notes:
        console.say(note)
    for score, comparison in (found.comparison or {}).items():
        line = f"{score}, {name} minus {rival}: {_compared(score, comparison)}"
        console.say(line)


def score_table(scores: Mapping[str, Scores], title: str) -> Table:
    """One row per system, one column per score, with intervals."""
    rows, header = score_rows(scores)
    table = Table(*header, title=title)
    for row in rows:
        table.add_row(*row)
    return table


def print_table(table: Table) -> None:
    """Print a table, at full width when the output is not a terminal."""
    console = Terminal()
    if not console.is_terminal:
        console.width = max(console.width, Terminal(width=10_000).measure(table).maximum)
    console.print(table)


def row_table(table: Mapping[str, Any]) -> Table:
    """A table of the report, with long texts truncated."""
    shown = Table(*(name.strip() for name in table["header"]), title=table["title"])
    for cells in table["rows"]:
        texts = [
            f"{cell:.2f}" if isinstance(cell, float) else "" if cell is None else str(cell)
            for cell in cells
        ]
        shown.add_row(*(printable(text[:60] + ("…" if len(text) > 60 else "")) for text in texts))
    return shown


def _compared(name: str, found: Comparison) -> str:
    """The difference of two runs in one score, with its p-value and row counts."""
    rows = f"{found.wins:,} better, {found.losses:,} worse, {found.ties:,} the same"
    return f"{difference(name, found.difference)}, {found.reason or chance(found.p_value)}; {rows}"


def _names(run: Run, other: Run | None) -> tuple[str, str]:
    """Names for two runs: their folder names, or full paths if those are equal."""
    path = run.folder.path
    if other is None:
        return path.name, ""
    beside = other.folder.path
    return (str(path), str(beside)) if path.name == beside.name else (path.name, beside.name)


def list_recipes(recipes: list[Recipe]) -> None:
    """List the recipes and the scores they claim."""
    table = Table("recipe", "description", "measured", "machine")
    for recipe in recipes:
        found = recipe.result
        score = (
            f"{found.score} {written(found.score, found.value)}" if found else "not measured yet"
        )
        cells = recipe.name, recipe.what, score, found.machine if found else ""
        table.add_row(*cells)
    print_table(table)
