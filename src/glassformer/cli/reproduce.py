"""`glassformer reproduce`: the results we stand behind, made again."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from glassformer import processes
from glassformer.errors import GlassformerError, unknown
from glassformer.terminal import print_json, print_line


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="A recipe, or the .toml file of your own.")
    ] = "",
    run: Annotated[Path | None, typer.Option(help="Where the run goes.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything random.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing meanwhile.")] = False,
) -> None:
    """Train a published recipe and hold the result against the score it claims.

    It ends with 1 where the result differs from the claim. Without a name it lists the recipes. One
    of several folds that was stopped goes on when --run names its folder.
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
        told = unknown("score", claimed.score, scores)
        raise GlassformerError(f"{recipe.asked}: result.score: {told}")
    if not as_json:
        print_line(claimed.verdict(found))
    if not agrees:
        raise typer.Exit(1)


def show_folds(
    folder: Path, report: Mapping[str, Any], *, as_json: bool, more: Mapping[str, Any]
) -> None:
    """How good all folds are together, beside the baseline; `more` is for machines."""
    from glassformer.cli.results import print_table, score_table

    if as_json:
        keys = ("facts", "scores", "notes")
        print_json({"folder": str(folder), **{key: report[key] for key in keys}, **more})
        return
    print_table(score_table(report["scores"], f"On the {report['facts']['scored on']}"))
    for note in report["notes"]:
        print_line(note)
    print_line(f"Report: {folder / 'report.html'}")
