"""`glassformer compare`: variants of a run under the same budget, side by side."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from glassformer.cli.options import AsJson, Quiet, with_some_train_options
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    from glassformer.reports.variants import VariantComparison
    from glassformer.runs.request import TrainRequest


@with_some_train_options(but=("seed", "pretrain", "curve"))
def compare(
    request: "TrainRequest",
    started: float,
    vary: Annotated[
        list[str],
        typer.Option(metavar="KEY=A,B,...", help="A setting and its values; repeatable."),
    ] = [],  # noqa: B006
    one_at_a_time: Annotated[
        bool,
        typer.Option(
            "--one-at-a-time", help="Change one setting at a time instead of all combinations."
        ),
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each variant.")] = 3,
    on: Annotated[str, typer.Option(help="Split to compare on: valid, test.")] = "valid",
    longer: Annotated[
        list[str], typer.Option(help="More rows to score, such as longer ones than in training.")
    ] = [],  # noqa: B006
    at_once: Annotated[
        int | None, typer.Option(min=1, help="Runs at once; default: what the machine allows.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train variants of a run under the same budget and tell which are better, and which are tied.

    After an interruption, the same command continues. Example: glassformer compare classify
    reviews.csv --vary model.position=learned,rotary,alibi --seeds 3 --time 5m
    """
    from glassformer.runs.compare import run_comparison
    from glassformer.runs.compare_request import comparison_request
    from glassformer.runs.display import Display

    wanted = comparison_request(
        request,
        vary,
        seeds=seeds,
        one_at_a_time=one_at_a_time,
        on=on,
        longer=longer,
        at_once=at_once,
    )
    found = run_comparison(wanted, Display(quiet=quiet))
    if as_json:
        print_json(found.as_values())
        return
    show_comparison(found)


def show_comparison(found: "VariantComparison") -> None:
    """The table with drawn intervals, the verdict, and where the page is."""
    from glassformer.cli.results import print_table

    first, score, *others = found.header()
    table = Table(first, score, "", *others, title=found.title)
    for (name, value, *more), drawn in zip(found.rows(), found.drawing(), strict=True):
        table.add_row(name, value, drawn, *more)
    print_table(table)
    console = Terminal()
    for sentence in (found.verdict(), *found.notes):
        console.say(sentence)
    console.say(f"Page: {found.facts['folder']}/comparison.html")
