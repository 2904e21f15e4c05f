"""The heads of a run on the command line: where they look, ablated, pruned."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from glassformer.errors import GlassformerError
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    from glassformer.runs.head_results import HeadResult
    from glassformer.runs.run import Run

NUMBER = re.compile(r"[<\d.,% ]*")


def study_heads(
    run: "Run",
    data: Sequence[str],
    *,
    heads: bool,
    ablate: Sequence[str],
    prune: bool,
    as_json: bool,
) -> None:
    """Show one of these studies of the heads of a run."""
    from glassformer.runs.display import Display

    found: HeadResult
    if heads:
        with Display().bar("reading rows") as progress:
            found = run.heads.look(*data, progress=progress)
    elif ablate:
        with Display().bar("ablations") as progress:
            found = run.heads.ablate(*ablate, data=list(data) or None, progress=progress)
    else:
        with Display().bar("pruned heads") as progress:
            found = run.heads.prune(*data, progress=progress)
    if as_json:
        print_json(found.as_values())
    else:
        show_result(found)


def refuse_several(studies: Mapping[str, bool]) -> None:
    """Refuse more than one study of a run at once."""
    first, *others = [f"--{name}" for name, chosen in studies.items() if chosen] or [""]
    if others:
        raise GlassformerError(f"{first} and {others[0]} are separate studies; give one of them")


def refuse_idle(options: Mapping[str, object]) -> None:
    """Refuse options that explain a single prediction."""
    for name, value in options.items():
        if value is not None:
            raise GlassformerError(
                f"--{name} is for explaining an input; leave it out with --heads, --ablate, "
                f"--prune, --summary and --faithfulness"
            )


def show_result(found: "HeadResult") -> None:
    """The table of a result between its title and its sentences."""
    from glassformer.cli.results import print_table

    console, table, lines = Terminal(), Table(*found.header), found.lines()
    for line in lines:
        table.add_row(*line)
    for column, *cells in zip(table.columns, *lines, strict=True):
        if column is not table.columns[0] and all(map(NUMBER.fullmatch, cells)):
            column.justify = "right"
    console.say(found.title)
    print_table(table)
    for sentence in found.sentences():
        console.say(sentence)
