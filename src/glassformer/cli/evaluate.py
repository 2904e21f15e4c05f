"""`glassformer evaluate`: how good a run is on labelled data."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.options import AsJson, Columns, Device, Header, Int8, RunFolder


def evaluate(
    run: RunFolder,
    data: Annotated[list[str], typer.Argument(metavar="DATA", help="Files or folders.")],
    against: Annotated[
        Path | None, typer.Option(metavar="RUN2", help="A second run to compare with.")
    ] = None,
    columns: Columns = "",
    header: Header = None,
    device: Device = "auto",
    int8: Int8 = False,
    as_json: AsJson = False,
) -> None:
    """Score a run on labelled data, with confidence intervals.

    Example: glassformer evaluate runs/reviews test.csv --against runs/other
    """
    from glassformer.cli.results import show_evaluation
    from glassformer.runs.display import Display
    from glassformer.runs.run import Run

    ours = Run(run, device=device, int8=int8)
    other = None if against is None else Run(against, device=device)
    with Display().waiting("evaluating"):
        found = ours.evaluate(*data, against=other, columns=columns or None, header=header)
    show_evaluation(found, ours, other, as_json=as_json)
