"""`glassformer reproduce`: the results we stand behind, made again."""

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="A recipe; none lists them.")] = "",
    run: Annotated[Path | None, typer.Option(help="Where the run goes.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything random.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing meanwhile.")] = False,
) -> None:
    """Train a published recipe and hold the result against the score it claims.

    Example: glassformer reproduce languages
    """
    from glassformer.cli.results import list_recipes, show_run, show_verdict
    from glassformer.runs.display import Display
    from glassformer.runs.recipes import RECIPES, follow, read_recipe

    if not name:
        list_recipes([read_recipe(recipe) for recipe in sorted(RECIPES)])
        return
    recipe = read_recipe(name)
    finished = follow(recipe, Display(quiet=quiet), run=run, seed=seed, device=device)
    show_run(finished, as_json=as_json)
    if not as_json:
        show_verdict(recipe, finished)
