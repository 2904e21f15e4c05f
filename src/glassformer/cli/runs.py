"""`glassformer runs`: list runs, and free disk space."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.options import AsJson
from glassformer.terminal import print_json, print_line

app = typer.Typer(
    no_args_is_help=True, help="List runs, and free disk space that they no longer need."
)

Home = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of runs.")]


@app.command("list")
def list_runs(home: Home = Path("runs"), as_json: AsJson = False) -> None:
    """List the runs in a folder with job, score and size.

    Example: glassformer runs list
    """
    from rich.table import Table

    from glassformer.cli.results import print_table
    from glassformer.runs.display import in_bytes
    from glassformer.runs.listing import list_runs_in

    runs = list_runs_in(home)
    if as_json:
        print_json([run.as_values() for run in runs])
        return
    table = Table("run", "job", "state", "score", "size", title=str(home))
    for run in runs:
        table.add_row(str(run.path), run.job, run.state, run.score, in_bytes(run.size))
    if runs:
        print_table(table)
    else:
        print_line(f"No runs in {home}.")


@app.command("prune")
def prune(
    home: Home = Path("runs"),
    dry: Annotated[bool, typer.Option("--dry", help="Only list what would be removed.")] = False,
) -> None:
    """Remove checkpoints and stored samples of finished runs, and leftovers of killed ones.

    Models, settings and reports are kept. Example: glassformer runs prune --dry
    """
    from glassformer.runs import listing
    from glassformer.runs.display import in_bytes

    total = 0
    for path, size in listing.prunable(home):
        if not dry:
            listing.prune(path)
        total += size
        print_line(f"{'would remove' if dry else 'removed'} {path} ({in_bytes(size)})")
    print_line(f"{in_bytes(total)} {'would be ' if dry else ''}freed")
