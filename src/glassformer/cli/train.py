"""`glassformer train` and `resume`: from raw data to a run."""

from typing import TYPE_CHECKING

from glassformer.cli.options import AsJson, Quiet, RunFolder, with_train_options

if TYPE_CHECKING:
    from glassformer.runs.request import TrainRequest


@with_train_options
def train(
    request: "TrainRequest", started: float, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Train a model on raw data and report how good it is.

    Example: glassformer train classify reviews.csv
    """
    from glassformer.cli.results import show_run
    from glassformer.runs.api import run_training
    from glassformer.runs.display import Display

    trained = run_training(request, Display(quiet=quiet), started=started)
    show_run(trained, as_json=as_json)


def resume(run: RunFolder, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Resume an interrupted run; the result is the same as without the interruption.

    Example: glassformer resume runs/reviews
    """
    from glassformer.cli.results import show_run
    from glassformer.runs.api import resume as resume_run

    show_run(resume_run(run, quiet=quiet), as_json=as_json)
