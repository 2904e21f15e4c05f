"""`glassformer compare`: variants of a run under the same budget, side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from glassformer.cli.options import AsJson, Quiet, with_some_train_options
from glassformer.terminal import Terminal, print_json

DRAWING = 2  # the column that gives way in a narrow terminal

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
    """The table with drawn intervals, the verdict, and where the page is.

    In a narrow terminal it is several tables, one below another, and intervals are not drawn.
    """
    from glassformer.cli.results import print_table

    console = Terminal()
    first, score, *others = found.header()
    header = [first, score, "", *others]
    rows = [
        [name, value, drawn, *more]
        for (name, value, *more), drawn in zip(found.rows(), found.drawing(), strict=True)
    ]
    width = console.width if console.is_terminal else None
    for number, table in enumerate(tables_within(width, header, rows)):
        table.title = found.title if not number else None
        print_table(table)
    for sentence in (found.verdict(), *found.notes):
        console.say(sentence)
    console.say(f"Page: {found.facts['folder']}/comparison.html")


def tables_within(
    width: int | None, header: Sequence[str], rows: Sequence[list[str]]
) -> list[Table]:
    """Tables no wider than a terminal, of these columns: each begins with the first of them.

    Args:
        width: In characters; None for one table of any width.
    """

    def table_of(columns: Sequence[int]) -> Table:
        table = Table(*(header[n] for n in columns))
        for row in rows:
            table.add_row(*(row[n] for n in columns))
        return table

    def grouped(columns: Sequence[int]) -> list[list[int]]:
        groups, measured = [[0]], Terminal(width=10_000)
        for column in columns:
            wider = [*groups[-1], column]
            if len(groups[-1]) > 1 and measured.measure(table_of(wider)).maximum > (width or 0):
                wider = [0, column]
                groups.append(wider)
            groups[-1] = wider
        return groups

    every = list(range(1, len(header)))
    if width is None:
        return [table_of([0, *every])]
    groups = grouped(every)
    if len(groups) > 1:
        groups = grouped([column for column in every if column != DRAWING])
    return [table_of(group) for group in groups]
