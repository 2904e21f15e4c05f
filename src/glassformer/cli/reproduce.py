"""`glassformer reproduce`: the results we stand behind, made again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from glassformer.errors import GlassformerError, unknown


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

    Without a name it lists the recipes. One of several folds that was stopped goes on when --run
    names its folder.
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
        show_run(finished, as_json=as_json)
        report = finished.report
    else:
        folder, pooled = follow_folds(recipe, display, run=run, seed=seed, device=device)
        report = pooled.as_values()
        show_folds(folder, report, as_json=as_json)
    if recipe.result is not None and not as_json:
        scores = next(iter(report["scores"].values()))
        if recipe.result.score not in scores:
            raise GlassformerError(
                f"{recipe.asked}: result.{unknown('score', recipe.result.score, scores)}"
            )
        print(recipe.result.verdict(scores[recipe.result.score]))


def show_folds(folder: Path, report: Mapping[str, Any], *, as_json: bool) -> None:
    """How good all folds are together, beside the baseline."""
    from glassformer.cli.results import print_json, print_table, score_table

    if as_json:
        keys = ("facts", "scores", "notes")
        print_json({"folder": str(folder), **{key: report[key] for key in keys}})
        return
    print_table(score_table(report["scores"], f"On the {report['facts']['scored on']}"))
    for note in report["notes"]:
        print(note)
    print(f"Report: {folder / 'report.html'}")
