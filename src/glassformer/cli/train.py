"""`glassformer train` and `resume`: from raw data to a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import asking

if TYPE_CHECKING:
    from glassformer.runs.request import TrainRequest


@asking
def train(
    asked: "TrainRequest",
    began: float,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing meanwhile.")] = False,
) -> None:
    """Train a model on raw data and say how good it is.

    Example: glassformer train classify reviews.csv
    """
    from glassformer.cli.results import show_run
    from glassformer.runs.api import train_as
    from glassformer.runs.display import Display

    found = train_as(asked, Display(quiet=quiet), began=began)
    show_run(found, as_json=as_json)


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing meanwhile.")] = False,
) -> None:
    """Go on with a run that was interrupted, to the same end.

    Example: glassformer resume runs/reviews
    """
    from glassformer.cli.results import show_run
    from glassformer.runs.api import resume as resume_run

    show_run(resume_run(run, quiet=quiet), as_json=as_json)
