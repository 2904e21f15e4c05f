"""`glassformer demo`: the embedded jobs, from data to scores, an explanation and a page."""

import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import Quiet
from glassformer.terminal import Terminal, print_line

if TYPE_CHECKING:
    from glassformer.runs.demo import Outcome

HOME = Path("runs/demo")


def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of the four runs.")
    ] = HOME,
    quiet: Quiet = False,
) -> None:
    """Train four small models on embedded data: names, dates, Python and Morse code.

    Takes eight minutes on two cores. Shows their scores next to baselines, explains a prediction,
    and says how to open the page on them. An interrupted demo continues; finished runs are kept.
    Example: glassformer demo
    """
    from glassformer.explaining.views.terminal import ExplanationView
    from glassformer.runs.demo import BUDGETS, EXPLAINED, refuse_missing_libraries, train_demo
    from glassformer.runs.display import Display, clock

    refuse_missing_libraries()
    display, started = Display(quiet=quiet), time.monotonic()
    found = {name: train_demo(name, folder, display) for name in BUDGETS}
    show_outcomes([*found.values()])
    name, given = EXPLAINED
    run = found[name].run
    console = Terminal()
    console.say(f"Why does {run.folder.path} answer as it does?")
    console.print(ExplanationView(explanation=run.explain(given)))
    display.say(f"all of this took {clock(time.monotonic() - started)}")
    paths = (str(one.run.folder.path) for one in found.values())
    print_line(f"See for yourself: {shlex.join([program(), 'serve', *paths])}")


def show_outcomes(found: Sequence["Outcome"]) -> None:
    """A table of the scores and those of the baselines."""
    from rich.table import Table

    from glassformer.cli.results import print_table
    from glassformer.reports.wording import interval, named

    table = Table("run", "what it does", "score", "trained", "baseline")
    for one in found:
        ours, theirs = interval(one.score, one.ours), interval(one.score, one.theirs)
        beside = f"{theirs.partition(' ')[0]} {one.baseline}"
        table.add_row(one.run.folder.path.name, one.what, named(one.score), ours, beside)
    print_table(table)


def program() -> str:
    """How this program was called, if a shell does not find it by its name."""
    return "glassformer" if shutil.which("glassformer") else sys.argv[0]
