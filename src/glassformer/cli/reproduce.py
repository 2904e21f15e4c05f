"""`glassformer reproduce`: train a published recipe again and check its score."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from glassformer import processes
from glassformer.cli.options import AnyDevice, AsJson, Quiet, Seed
from glassformer.errors import GlassformerError, unknown
from glassformer.terminal import print_json, print_line


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A recipe, or your own .toml file.")
    ] = "",
    run: Annotated[Path | None, typer.Option(help="Run folder to create.")] = None,
    seed: Seed = None,
    device: AnyDevice = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a published recipe and check the result against the claimed score.

    Exits with 1 if the result differs from the claim. Without a name it lists the recipes. An
    interrupted recipe with folds continues when --run names its folder.
    Example: glassformer reproduce languages
    """
    from glassformer.cli.results import list_recipes, show_run
    from glassformer.runs.display import Display
    from glassformer.runs.recipes import RECIPES, follow, follow_folds, read_recipe

    if not name:
        list_recipes([read_recipe(recipe) for recipe in sorted(RECIPES)])
        return
    recipe, display = read_recipe(name), Display(quiet=quiet)
    if recipe.folds is None:
        finished = follow(recipe, display, run=run, seed=seed, device=device)
        report = finished.report
        show = partial(show_run, finished)
    else:
        folder, pooled = follow_folds(recipe, display, run=run, seed=seed, device=device)
        report = pooled.as_values()
        show = partial(show_folds, folder, report)
    if not processes.is_first():
        return
    claimed = recipe.result
    scores: dict[str, Any] = next(iter(report["scores"].values()), {})
    found = scores.get(claimed.score) if claimed else None
    agrees = claimed.agrees(found) if claimed and found else None
    claim = asdict(claimed) if claimed else None
    show(as_json=as_json, more={"claimed": claim, "agrees": agrees})
    if claimed is None:
        return
    if found is None:
        problem = unknown("score", claimed.score, scores)
        raise GlassformerError(f"{recipe.reference}: result.score: {problem}")
    if not as_json:
        print_line(claimed.verdict(found))
    if not agrees:
        raise typer.Exit(1)


def show_folds(
    folder: Path, report: Mapping[str, Any], *, as_json: bool, more: Mapping[str, Any]
) -> None:
    """Show the pooled scores of all folds and of the baseline; `more` is added to the JSON."""
    from glassformer.cli.results import print_table, score_table

    if as_json:
        keys = ("facts", "scores", "notes")
        print_json({"folder": str(folder), **{key: report[key] for key in keys}, **more})
        return
    print_table(score_table(report["scores"], f"On the {report['facts']['scored on']}"))
    for note in report["notes"]:
        print_line(note)
    print_line(f"Report: {folder / 'report.html'}")
